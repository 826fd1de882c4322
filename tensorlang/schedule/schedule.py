"""The face of scheduling: a thin, mutable object over immutable programs.

Each method is one primitive: it resolves what the user named, asks the primitive's ``check``, and
takes its ``apply`` as the new program. A refused step leaves the schedule as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

from tensorlang.errors import ScheduleError
from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Definition, Stage, Tensor
from tensorlang.ir.expr import Expr, affine_conditions
from tensorlang.ir.parse import ParseError, parse_affine
from tensorlang.ir.printer import format_program
from tensorlang.ir.program import Program, Scope, Tail
from tensorlang.schedule import resolve
from tensorlang.schedule.handles import Loop, StageHandle
from tensorlang.schedule.naive import naive_program
from tensorlang.schedule.primitives.annotate import Annotate
from tensorlang.schedule.primitives.assume import Assume
from tensorlang.schedule.primitives.base import Outcome, Primitive
from tensorlang.schedule.primitives.cache_read import CacheRead
from tensorlang.schedule.primitives.cache_write import CacheWrite
from tensorlang.schedule.primitives.compute_at import ComputeAt
from tensorlang.schedule.primitives.compute_inline import ComputeInline
from tensorlang.schedule.primitives.compute_root import ComputeRoot
from tensorlang.schedule.primitives.decompose_reduction import DecomposeReduction
from tensorlang.schedule.primitives.fuse import Fuse
from tensorlang.schedule.primitives.layout import LayoutMap, SetLayout, trace_layout
from tensorlang.schedule.primitives.parallel import Parallel
from tensorlang.schedule.primitives.peel import Peel
from tensorlang.schedule.primitives.reorder import Reorder
from tensorlang.schedule.primitives.reverse_compute_at import ReverseComputeAt
from tensorlang.schedule.primitives.rfactor import Rfactor
from tensorlang.schedule.primitives.split import Split
from tensorlang.schedule.primitives.tile import Tile
from tensorlang.schedule.primitives.unroll import Unroll
from tensorlang.schedule.primitives.vectorize import Vectorize
from tensorlang.schedule.refusal import Refusal, schedule_error
from tensorlang.schedule.trace import JSON_VERSION, LayoutText, Step, step_from_json, to_python
from tensorlang.schedule.tree import find_loop
from tensorlang.source import user_location

LoopArgument = Loop | str
StageArgument = StageHandle | str


class Schedule:
    """A schedule of one operator; made by ``tl.schedule(op, **sizes_and_attributes)``.

    ``print(s)`` shows the program after the steps so far. Loops are given as handles
    (``i, j = s.loops``) or as paths (``"i"``, ``"e/j"``).

    Examples:
        >>> import tensorlang as tl
        >>> N = tl.dim("N")
        >>> @tl.compute
        ... def double(x: tl.f32[N]):
        ...     return tl.tensor(x[i] * 2 for i in N)
        >>> s = tl.schedule(double)
        >>> outer, inner = s.split("i", 8)
        >>> s.vectorize(inner)
        >>> print(s)
        def double(x: f32[N]) -> f32[N]:
            for i.o in (N + 7) // 8:
                vectorized for i.i in 8:
                    double[8 * i.o + i.i] = x[8 * i.o + i.i] * 2  # if 8 * i.o + i.i < N

    """

    def __init__(
        self, definition: Definition, fixed: Mapping[str, Any] | None = None, operator: Any = None
    ) -> None:
        self._history: list[Program] = [naive_program(definition)]
        self._steps: list[Step] = []
        self._gone: dict[Var, Step] = {}
        self._fixed = dict(fixed or {})
        self._operator = operator
        self._applying_rules = False

    # --- what stands ---------------------------------------------------------------------------

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
        """Whether a step was taken by hand (and so is proved when compiled)."""
        return any(not step.by_rule for step in self._steps)

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

    # --- loop structure ------------------------------------------------------------------------

    def split(self, loop: LoopArgument, factor: int, tail: Tail = "auto") -> tuple[Loop, Loop]:
        """Split a loop into blocks of ``factor`` iterations; returns (outer, inner).

        ``tail``: how a last block that sticks out is treated. ``"auto"`` lets lowering choose,
        ``"guard"`` tests each iteration, ``"peel"`` runs full blocks and the rest apart,
        ``"mask"`` masks vector lanes, ``"pad"`` runs the whole block where only private storage
        sees it, ``"exact"`` promises that there is no rest (checked at the call).
        """
        outer, inner = self._take(
            Step("split", (loop, factor), {} if tail == "auto" else {"tail": tail}),
            lambda: Split(self._loop(loop), factor, tail),
        )
        return self._as_loop(outer), self._as_loop(inner)

    def tile(
        self, loops: Sequence[LoopArgument], sizes: Sequence[int], tail: Tail = "auto"
    ) -> tuple[Loop, ...]:
        """Split several loops and move the inner parts inside; returns outers, then inners."""
        results = self._take(
            Step("tile", (tuple(loops), tuple(sizes)), {} if tail == "auto" else {"tail": tail}),
            lambda: Tile(tuple(self._loop(loop) for loop in loops), tuple(sizes), tail),
        )
        return tuple(self._as_loop(result) for result in results)

    def fuse(self, *loops: LoopArgument) -> Loop:
        """Make perfectly nested loops, given outermost first, one loop; returns it."""
        (fused,) = self._take(
            Step("fuse", loops), lambda: Fuse(tuple(self._loop(loop) for loop in loops))
        )
        return self._as_loop(fused)

    def reorder(self, *loops: LoopArgument) -> None:
        """Put perfectly nested loops into the given order, outermost first."""
        self._take(
            Step("reorder", loops), lambda: Reorder(tuple(self._loop(loop) for loop in loops))
        )

    def peel(self, loop: LoopArgument) -> tuple[Loop, Loop]:
        """Run the last, guarded iterations of a loop apart; returns (main, rest)."""
        main, rest = self._take(Step("peel", (loop,)), lambda: Peel(self._loop(loop)))
        return self._as_loop(main), self._as_loop(rest)

    # --- how a loop runs -----------------------------------------------------------------------

    def parallel(self, loop: LoopArgument) -> None:
        """Run the iterations of a loop on several threads."""
        self._take(Step("parallel", (loop,)), lambda: Parallel(self._loop(loop)))

    def vectorize(self, loop: LoopArgument) -> None:
        """Make the iterations of a loop vector lanes; their number must be constant."""
        self._take(Step("vectorize", (loop,)), lambda: Vectorize(self._loop(loop)))

    def unroll(self, loop: LoopArgument, factor: int | None = None) -> None:
        """Write out the iterations of a loop; with ``factor``, of the inner part after a split."""
        if factor is not None:
            _, loop = self.split(loop, factor)
        self._take(Step("unroll", (loop,)), lambda: Unroll(self._loop(loop)))

    # --- where a stage runs --------------------------------------------------------------------

    def compute_at(self, stage: StageArgument, loop: LoopArgument) -> None:
        """Compute a stage inside a loop of its readers, over just what they read there."""
        self._take(
            Step("compute_at", (stage, loop)),
            lambda: ComputeAt(self._stage(stage), self._loop(loop)),
        )

    def compute_inline(self, stage: StageArgument) -> None:
        """Substitute a stage into the stages that read it."""
        self._take(Step("compute_inline", (stage,)), lambda: ComputeInline(self._stage(stage)))

    def compute_root(self, stage: StageArgument) -> None:
        """Compute a stage whole, at the outermost level."""
        self._take(Step("compute_root", (stage,)), lambda: ComputeRoot(self._stage(stage)))

    def reverse_compute_at(self, stage: StageArgument, loop: LoopArgument) -> None:
        """Compute an elementwise stage inside a loop of the stage that it reads."""
        self._take(
            Step("reverse_compute_at", (stage, loop)),
            lambda: ReverseComputeAt(self._stage(stage), self._loop(loop)),
        )

    # --- copies and storage --------------------------------------------------------------------

    def cache_read(
        self,
        tensor: StageArgument,
        at: LoopArgument | None = None,
        scope: Scope = "global",
    ) -> StageHandle:
        """Copy what one iteration of ``at`` reads of a tensor; returns the copying stage."""
        keywords: dict[str, Any] = {} if at is None else {"at": at}
        if scope != "global":
            keywords["scope"] = scope
        (copy,) = self._take(
            Step("cache_read", (tensor,), keywords),
            lambda: CacheRead(
                self._tensor(tensor), None if at is None else self._loop(at), self._scope(scope)
            ),
        )
        return self._as_stage(copy)

    def cache_write(
        self, stage: StageArgument, at: LoopArgument, scope: Scope = "local"
    ) -> StageHandle:
        """Compute a stage into a copy during one iteration of ``at``; returns the copy back."""
        keywords: dict[str, Any] = {"at": at} | ({} if scope == "local" else {"scope": scope})
        copies = self._take(
            Step("cache_write", (stage,), keywords),
            lambda: CacheWrite(self._stage(stage), self._loop(at), self._scope(scope)),
        )
        return self._as_stage(copies[0])

    def layout(self, buffer: StageArgument, layout_map: LayoutMap | LayoutText) -> None:
        """Lay out an owned buffer: ``lambda k, n: (n // 16, k, n % 16)`` packs panels."""

        def primitive() -> Primitive:
            tensor = self._tensor(buffer)
            return SetLayout(tensor, *self._layout(tensor, layout_map))

        def text() -> LayoutText:
            variables, indices = self._layout(self._tensor(buffer), layout_map)
            return LayoutText(tuple(v.name for v in variables), tuple(map(str, indices)))

        self._take(Step("layout", (buffer, text)), primitive)

    # --- reductions ----------------------------------------------------------------------------

    def rfactor(self, loop: LoopArgument) -> StageHandle:
        """Give each iteration of a reduction loop a partial result; returns the partial stage."""
        (partial,) = self._take(Step("rfactor", (loop,)), lambda: Rfactor(self._loop(loop)))
        return self._as_stage(partial)

    def decompose_reduction(self, stage: StageArgument, loop: LoopArgument) -> StageHandle:
        """Place the init of a reduction right before a loop; returns the init as a stage."""
        self._take(
            Step("decompose_reduction", (stage, loop)),
            lambda: DecomposeReduction(self._stage(stage), self._loop(loop)),
        )
        label = stage.label if isinstance(stage, StageHandle) else self[stage].label
        return StageHandle(self, label, "init")

    # --- facts and hints -----------------------------------------------------------------------

    def assume(self, condition: Any) -> None:
        """Rely on a condition on the sizes, ``s.assume(N % 8 == 0)``; checked at each call."""
        self._take(
            Step("assume", (lambda: self._condition(condition)[2],)),
            lambda: Assume(*self._condition(condition)),
        )

    def annotate(self, loop: LoopArgument, **hints: str | int | bool | float) -> None:
        """Attach hints for a backend or a rule to a loop; they change no meaning."""
        self._take(
            Step("annotate", (loop,), hints),
            lambda: Annotate(self._loop(loop), tuple(hints.items())),
        )

    # --- the whole -----------------------------------------------------------------------------

    def verify(self) -> Any:
        """Prove that the program computes its definition; returns the evidence.

        Raises ScheduleError, with a counterexample, if it does not or cannot be proved to.
        """
        from tensorlang.poly.proof import prove
        from tensorlang.schedule.place_inits import place_inits

        evidence = prove(place_inits(self.program))
        if not evidence.ok:
            failed = next(item for item in evidence.claims if not item.holds)
            refusal = Refusal(
                f"the program does not provably compute {self.definition.name}: {failed.name}",
                "s.undo() takes back the last step",
                counterexample=str(failed.counterexample),
            )
            raise self._error(refusal, "verify()")
        return evidence

    def default(self) -> Self:
        """Apply the rules' steps to an untouched schedule; returns the schedule itself."""
        from tensorlang.schedule.rules import apply_rules

        if self._steps:
            raise self._error(
                Refusal("the schedule has steps already", "tl.schedule(op).default()"), "default()"
            )
        self._applying_rules = True
        try:
            apply_rules(self)
        finally:
            self._applying_rules = False
        return self

    def undo(self) -> None:
        """Take back the last step; raises ScheduleError if there is none."""
        if not self._steps:
            raise self._error(Refusal("there is no step to take back", ""), "undo()")
        step = self._steps.pop()
        self._history.pop()
        self._gone = {v: by for v, by in self._gone.items() if by is not step}

    def fork(self) -> Schedule:
        """Return a copy that goes on by itself; handles are valid in both."""
        copy = Schedule.__new__(Schedule)
        copy._history = list(self._history)
        copy._steps = list(self._steps)
        copy._gone = dict(self._gone)
        copy._fixed = dict(self._fixed)
        copy._operator = self._operator
        copy._applying_rules = False
        return copy

    def to_python(self) -> str:
        """Return Python source that rebuilds the schedule."""
        return to_python(self.definition.name, self._fixed, self.trace)

    def to_json(self) -> str:
        """Return the schedule, with its definition, as JSON text."""
        from tensorlang.ir.serialize import definition_to_json

        document = {
            "tensorlang_schedule": JSON_VERSION,
            "definition": definition_to_json(self.definition),
            "fixed": self._fixed,
            "steps": [step.to_json() for step in self._steps],
        }
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """Rebuild a schedule from :meth:`to_json`'s text; raises ScheduleError for other text."""
        from tensorlang.ir.serialize import definition_from_json

        try:
            document = json.loads(text)
            if document["tensorlang_schedule"] != JSON_VERSION:
                raise ValueError(f"version {document['tensorlang_schedule']!r} is not known")
            definition = definition_from_json(document["definition"])
            steps = [step_from_json(step) for step in document["steps"]]
            fixed = dict(document["fixed"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ScheduleError(f"this is no saved schedule: {error}") from None
        schedule = cls(definition, fixed)
        schedule._replay(steps)
        return schedule

    def replay(self, operator: Any = None, **sizes_and_attributes: Any) -> Schedule:
        """Take the same steps on another operator, or on the same one with other sizes."""
        from tensorlang.schedule.entry import schedule as make

        target = operator if operator is not None else self._operator
        if target is None:
            target = self.definition
        new = make(target, **sizes_and_attributes)
        new._replay(self._steps)
        return new

    # --- how a step is taken -------------------------------------------------------------------

    def _replay(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.name not in STEPS:
                raise ScheduleError(f"a saved schedule has no step {step.name!r}")
            try:
                getattr(self, step.name)(*step.arguments, **step.keywords)
            except TypeError as error:
                raise ScheduleError(f"the step {step} does not fit: {error}") from None

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
            primitive.check(before)
            outcome: Outcome = primitive.apply(before)
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
            return "..." if callable(value) else value

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
            raise Refusal(
                f"{loop!r} is no loop", 'a handle from s.loops or a split, or a path such as "i"'
            )
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
        except (ParseError, TypeError, ZeroDivisionError) as error:
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
        for operator, equality in (("==", True), (">=", False)):
            left, found, right = text.partition(operator)
            if found:
                try:
                    form = parse_affine(left, names) - parse_affine(right, names)
                except ParseError as error:
                    raise Refusal(str(error), 's.assume("N % 8 == 0")') from None
                return form, equality, text
        raise Refusal(f"{text!r} is no condition", 's.assume("N % 8 == 0"), s.assume("M >= 16")')


STEPS = (
    "split", "tile", "fuse", "reorder", "peel", "parallel", "vectorize", "unroll",
    "compute_at", "compute_inline", "compute_root", "reverse_compute_at",
    "cache_read", "cache_write", "layout", "rfactor", "decompose_reduction", "assume", "annotate",
)  # fmt: skip
"""The names of the primitives: what a saved schedule may hold."""
