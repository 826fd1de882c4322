"""The state behind a schedule: its programs, its steps, and what the user named.

A ``Session`` takes a step (resolve, check, apply, record) or refuses it and stays as it was. The
public methods, one a primitive, are on ``Schedule``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, cast

from tensorlang.errors import ScheduleError
from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Definition, Stage, Tensor
from tensorlang.ir.expr import Expr, affine_conditions
from tensorlang.ir.parse import ParseError, parse_affine
from tensorlang.ir.printer import format_program
from tensorlang.ir.program import Program, Scope
from tensorlang.ir.routines import find_broken_unit, noun_of, unit_axes
from tensorlang.schedule import resolve
from tensorlang.schedule.handles import Loop, StageHandle
from tensorlang.schedule.naive import naive_program
from tensorlang.schedule.primitives.base import Outcome, Primitive
from tensorlang.schedule.primitives.layout import trace_layout
from tensorlang.schedule.primitives.prefetch import require_prefetches
from tensorlang.schedule.refusal import Refusal, schedule_error
from tensorlang.schedule.trace import LayoutText, Step
from tensorlang.schedule.tree import find_loop
from tensorlang.source import user_location


def checked(primitive: Primitive, program: Program) -> Outcome:
    """Return what a primitive makes of a program; raise ``Refusal`` if it may not."""
    primitive.check(program)
    outcome: Outcome = primitive.apply(program)
    require_prefetches(program, outcome.program)
    _require_units(outcome.program)
    return outcome


def _require_units(program: Program) -> None:
    """Refuse a step after which a sort or a scatter could not run as a whole."""
    broken = find_broken_unit(program.body)
    if broken is None:
        return
    compute, fault = broken
    routine = compute.stage.routine
    assert routine is not None
    own = ", ".join(compute.stage.axes[axis].variable.name for axis in unit_axes(compute.stage))
    raise Refusal(
        f"{compute.stage.name} is {noun_of(routine)}, computed as a whole over {own}, and {fault}",
        f"leave the loops over {own} as they are; other loops and other stages may be scheduled",
        compute=compute,
    )


class Session:
    """Immutable programs, one after the other, and the steps between them."""

    def __init__(
        self, definition: Definition, fixed: Mapping[str, Any] | None = None, operator: Any = None
    ) -> None:
        self._history: list[Program] = [naive_program(definition)]
        self._steps: list[Step] = []
        self._gone: dict[Var, Step] = {}
        self._fixed = dict(fixed or {})
        self._operator = operator
        self._applying_rules = False
        self._is_read = False

    @property
    def program(self) -> Program:
        """The scheduled program as it stands."""
        return self._history[-1]

    @property
    def definition(self) -> Definition:
        """The definition that the program computes."""
        return self.program.definition

    @property
    def operator(self) -> Any:
        """The operator that the schedule was made from; None for a bare definition."""
        return self._operator

    @property
    def trace(self) -> tuple[Step, ...]:
        """The steps taken so far, with everything named by text."""
        return tuple(self._steps)

    @property
    def is_hand_written(self) -> bool:
        """Whether a step was taken by hand, or all was read from a text: it is to be proved."""
        return self._is_read or any(not step.by_rule for step in self._steps)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The output stage's loops, outermost first.

        Raises ScheduleError for an operator whose outputs come from several stages.
        """
        stages = resolve.output_stages(self.program)
        if len(stages) != 1:
            names = ", ".join(f's["{stage.name}"].loops' for stage in stages)
            raise self._error(
                Refusal(f"{self.definition.name} has several output stages", names), "loops"
            )
        return self[stages[0].name].loops

    @property
    def stages(self) -> tuple[StageHandle, ...]:
        """Every stage of the program, copies included."""
        return tuple(StageHandle(self, label) for label in resolve.stage_labels(self.program))

    def __getitem__(self, name: str) -> StageHandle:
        """Return a stage by name: ``s["top"]``, ``s["softmax/e"]``, ``s["C.write"]``."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            stages = ", ".join(f's["{label}"]' for label in resolve.stage_labels(self.program))
            raise self._error(Refusal(f"{name!r} is no stage's name", stages), f"s[{name!r}]")
        part = ""
        base = name
        if name.endswith(".init") and name not in resolve.stage_labels(self.program):
            base, part = name.removesuffix(".init"), "init"
        try:
            stage = resolve.resolve_stage(self.program, base)
        except Refusal as refusal:
            raise self._error(refusal, f"s[{name!r}]") from None
        return StageHandle(self, self._label(stage), part)

    def __str__(self) -> str:
        return format_program(self.program)

    def __repr__(self) -> str:
        return f"<Schedule of {self.definition.name}, {len(self._steps)} steps>"

    # --- taking steps, and taking them back ----------------------------------------------------

    def undo(self) -> None:
        """Take back the last step; raises ScheduleError if there is none."""
        if not self._steps:
            raise self._error(Refusal("there is no step to take back", ""), "undo()")
        step = self._steps.pop()
        self._history.pop()
        self._gone = {v: by for v, by in self._gone.items() if by is not step}

    def fork(self) -> Self:
        """Return a copy that goes on by itself; handles are valid in both."""
        copy = type(self).__new__(type(self))
        copy._history = list(self._history)
        copy._steps = list(self._steps)
        copy._gone = dict(self._gone)
        copy._fixed = dict(self._fixed)
        copy._operator = self._operator
        copy._applying_rules = False
        copy._is_read = self._is_read
        return copy

    def _take(self, step: Step, make: Callable[[], Primitive]) -> tuple[Var | Stage, ...]:
        """Resolve, check and apply a primitive; record it under names instead of handles."""
        before = self.program
        try:
            primitive = make()
            recorded = Step(
                step.name,
                tuple(self._recorded(argument) for argument in step.arguments),
                {key: self._recorded(value) for key, value in step.keywords.items()},
            )
            outcome = checked(primitive, before)
        except Refusal as refusal:
            raise self._error(refusal, self._described(step)) from None
        self._history.append(outcome.program)
        results = tuple(self._name_of(result) for result in outcome.results)
        recorded = Step(
            recorded.name,
            recorded.arguments,
            recorded.keywords,
            results,
            user_location(3),
            self._applying_rules,
        )
        self._steps.append(recorded)
        remaining = set(resolve.loop_paths(outcome.program).values())
        for handle in resolve.loop_paths(before).values():
            if handle not in remaining:
                self._gone[handle] = recorded
        return outcome.results

    def _described(self, step: Step) -> str:
        def plain(value: Any) -> Any:
            if isinstance(value, Loop):
                return value.variable.name
            if isinstance(value, StageHandle):
                return value.label
            if isinstance(value, tuple):
                return tuple(plain(item) for item in cast("tuple[Any, ...]", value))
            return ... if callable(value) else value

        arguments = tuple(plain(argument) for argument in step.arguments)
        return str(Step(step.name, arguments, {k: plain(v) for k, v in step.keywords.items()}))

    def _recorded(self, value: Any) -> Any:
        if isinstance(value, Loop):
            return resolve.shortest_path(self.program, value.variable)
        if isinstance(value, StageHandle):
            return value.label
        if isinstance(value, tuple):
            return tuple(self._recorded(item) for item in cast("tuple[Any, ...]", value))
        return value() if callable(value) else value

    def _name_of(self, result: Var | Stage) -> str:
        if isinstance(result, Var):
            return resolve.shortest_path(self.program, result)
        return self._label(result)

    def _label(self, stage: Stage) -> str:
        labels = resolve.stage_labels(self.program)
        return next(label for label, known in labels.items() if known is stage)

    def _as_loop(self, result: Var | Stage) -> Loop:
        assert isinstance(result, Var)
        return Loop(self, result)

    def _as_stage(self, result: Var | Stage) -> StageHandle:
        assert isinstance(result, Stage)
        return StageHandle(self, self._label(result))

    def _error(self, refusal: Refusal, step: str) -> ScheduleError:
        return schedule_error(refusal, step, user_location(2), self.program)

    # --- what the user named -------------------------------------------------------------------

    def _loop(self, loop: Any) -> Var:
        if isinstance(loop, str):
            return resolve.resolve_path(self.program, loop)
        if not isinstance(loop, Loop):
            cure = 'a handle from s.loops or a split, or a path such as "i"'
            if isinstance(loop, list | tuple):
                cure = "each loop as an argument of its own: s.reorder(io, jo)"
            raise Refusal(f"{loop!r} is no loop", cure)
        if find_loop(self.program.body, loop.variable) is not None:
            return loop.variable
        step = self._gone.get(loop.variable)
        if step is None:
            raise Refusal(
                f"{loop.variable} is a loop of another schedule",
                f"a loop of this one: {', '.join(resolve.loop_paths(self.program))}",
            )
        made = f", which made {', '.join(step.results)}" if step.results else ""
        raise Refusal(
            f"{loop.variable} is gone: {step} at {step.location} replaced it{made}",
            f"one of {', '.join(resolve.loop_paths(self.program))}",
        )

    def _stage(self, stage: Any) -> Stage:
        if isinstance(stage, StageHandle | str):
            name = stage.label if isinstance(stage, StageHandle) else stage
            return resolve.resolve_stage(self.program, name)
        raise Refusal(f"{stage!r} is no stage", 'a name, or a handle such as s["C"]')

    def _tensor(self, tensor: Any) -> Tensor:
        if isinstance(tensor, StageHandle):
            return resolve.resolve_stage(self.program, tensor.label).tensor
        if isinstance(tensor, str):
            return resolve.resolve_tensor(self.program, tensor)
        raise Refusal(f"{tensor!r} is no tensor", 'the name of an input or a stage, such as "B"')

    def _scope(self, scope: str) -> Scope:
        if scope in ("global", "local", "shared"):
            return scope
        raise Refusal(f"there is no scope {scope!r}", '"global", "shared" or "local" (registers)')

    def _layout(self, tensor: Tensor, layout_map: Any) -> Any:
        try:
            if isinstance(layout_map, LayoutText):
                variables = tuple(Var(name) for name in layout_map.variables)
                names = {variable.name: variable for variable in variables}
                return variables, tuple(parse_affine(text, names) for text in layout_map.indices)
            return trace_layout(len(tensor.shape), layout_map)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Refusal(
                f"the layout map does not work: {error}",
                "a function of positions, such as lambda k, n: (n // 16, k, n % 16)",
            ) from None

    def _condition(self, condition: Any) -> tuple[Any, bool, str]:
        if isinstance(condition, str):
            return self._condition_from_text(condition)
        expr: Expr | None = getattr(condition, "expr", None)
        forms = None if expr is None else affine_conditions(expr)
        if not forms:
            raise Refusal(
                f"{condition!r} is no condition on sizes", "s.assume(N % 8 == 0), s.assume(M >= 16)"
            )
        if len(forms) == 2:
            return forms[0], True, f"{forms[0]} == 0"
        return forms[0], False, f"{forms[0]} >= 0"

    def _condition_from_text(self, text: str) -> tuple[Any, bool, str]:
        names = {size.name: size for size in self.definition.sizes}
        for operator in ("==", ">=", "<="):
            left, found, right = text.partition(operator)
            if found:
                try:
                    form = parse_affine(left.strip(), names) - parse_affine(right.strip(), names)
                except ParseError as error:
                    raise Refusal(str(error), 's.assume("N % 8 == 0")') from None
                return -form if operator == "<=" else form, operator == "==", text
        raise Refusal(f"{text!r} is no condition", 's.assume("N % 8 == 0"), s.assume("M >= 16")')
