"""The face of scheduling: a thin, mutable object over immutable programs.

Each method is one primitive: it resolves what the user named, asks the primitive's ``check``, and
takes its ``apply`` as the new program. A refused step leaves the schedule as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Self, cast

from tensorlang.errors import ScheduleError
from tensorlang.ir.program import LoopKind, Scope, Tail
from tensorlang.schedule.handles import Loop, StageHandle
from tensorlang.schedule.primitives.annotate import Annotate
from tensorlang.schedule.primitives.assume import Assume
from tensorlang.schedule.primitives.base import Primitive
from tensorlang.schedule.primitives.bind import Bind
from tensorlang.schedule.primitives.cache_read import CacheRead
from tensorlang.schedule.primitives.cache_write import CacheWrite
from tensorlang.schedule.primitives.compute_at import ComputeAt
from tensorlang.schedule.primitives.compute_inline import ComputeInline
from tensorlang.schedule.primitives.compute_root import ComputeRoot
from tensorlang.schedule.primitives.decompose_reduction import DecomposeReduction
from tensorlang.schedule.primitives.fuse import Fuse
from tensorlang.schedule.primitives.layout import LayoutMap, SetLayout
from tensorlang.schedule.primitives.pad_storage import PadStorage
from tensorlang.schedule.primitives.parallel import Parallel
from tensorlang.schedule.primitives.peel import Peel
from tensorlang.schedule.primitives.prefetch import Prefetch
from tensorlang.schedule.primitives.reorder import Reorder
from tensorlang.schedule.primitives.reverse_compute_at import ReverseComputeAt
from tensorlang.schedule.primitives.reverse_compute_inline import ReverseComputeInline
from tensorlang.schedule.primitives.rfactor import Rfactor
from tensorlang.schedule.primitives.split import Split, factor_for
from tensorlang.schedule.primitives.storage_fold import StorageFold
from tensorlang.schedule.primitives.stream import Stream
from tensorlang.schedule.primitives.swizzle import Swizzle
from tensorlang.schedule.primitives.tile import Tile
from tensorlang.schedule.primitives.unroll import Unroll
from tensorlang.schedule.primitives.vectorize import Vectorize
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.session import Session
from tensorlang.schedule.trace import JSON_VERSION, LayoutText, Step, step_from_json, to_python

if TYPE_CHECKING:
    from tensorlang.schedule.explain import Explanation
    from tensorlang.schedule.rules.choice import Choice

LoopArgument = Loop | str
StageArgument = StageHandle | str


class Schedule(Session):
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

    # --- loop structure ------------------------------------------------------------------------

    def split(
        self,
        loop: LoopArgument,
        factor: int | None = None,
        tail: Tail = "auto",
        *,
        parts: int | None = None,
    ) -> tuple[Loop, Loop]:
        """Split a loop into blocks of ``factor`` iterations; returns (outer, inner).

        ``parts`` instead of ``factor``, for a loop of a constant number of iterations: the least
        factor that makes at most so many blocks.

        ``tail``: how a last block that sticks out is treated. ``"auto"`` lets lowering choose,
        ``"guard"`` tests each iteration, ``"peel"`` runs full blocks and the rest apart,
        ``"mask"`` masks vector lanes, ``"shift"`` moves the last block back over the one before
        where computing an element again does no harm, ``"pad"`` runs the whole block where only
        private storage sees it, ``"exact"`` promises that there is no rest (checked at the call).
        """
        if (factor is None) == (parts is None):
            raise TypeError("split takes a factor or parts=, as in s.split(i, 16)")
        factor, parts = _whole(factor), _whole(parts)
        arguments = (loop,) if factor is None else (loop, factor)
        keywords: dict[str, Any] = {} if tail == "auto" else {"tail": tail}
        if parts is not None:
            keywords["parts"] = parts

        def primitive() -> Primitive:
            variable = self._loop(loop)
            size = factor if parts is None else factor_for(self.program, variable, parts)
            assert size is not None
            return Split(variable, size, tail)

        outer, inner = self._take(Step("split", arguments, keywords), primitive)
        return self._as_loop(outer), self._as_loop(inner)

    def tile(
        self, loops: Sequence[LoopArgument], sizes: Sequence[int], tail: Tail = "auto"
    ) -> tuple[Loop, ...]:
        """Split several loops and move the inner parts inside; returns outers, then inners."""
        factors = tuple(_whole(size) for size in sizes)
        results = self._take(
            Step("tile", (tuple(loops), factors), {} if tail == "auto" else {"tail": tail}),
            lambda: Tile(tuple(self._loop(loop) for loop in loops), factors, tail),
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
        factor = _whole(factor)
        self._take(
            Step("unroll", (loop,), {} if factor is None else {"factor": factor}),
            lambda: Unroll(self._loop(loop), factor),
        )

    def bind(self, loop: LoopArgument, axis: str) -> None:
        """Run the iterations of a loop as blocks of a grid or as threads of a block of a GPU.

        ``axis``: ``"block.x"``, ``"block.y"``, ``"block.z"`` for outermost, perfectly nested
        loops; ``"thread.x"``, ``"thread.y"``, ``"thread.z"`` for loops of a constant number of
        iterations inside them, at most 1024 threads in all.
        """
        self._take(
            Step("bind", (loop, axis)), lambda: Bind(self._loop(loop), cast("LoopKind", axis))
        )

    # --- where a stage runs --------------------------------------------------------------------

    def compute_at(self, stage: StageArgument, loop: LoopArgument, scope: Scope = "global") -> None:
        """Compute a stage inside a loop of its readers, over just what they read there.

        ``scope="local"`` keeps it in registers, for which the part must have constant extents.
        """
        self._take(
            Step("compute_at", (stage, loop), {} if scope == "global" else {"scope": scope}),
            lambda: ComputeAt(self._stage(stage), self._loop(loop), self._scope(scope)),
        )

    def compute_inline(self, stage: StageArgument) -> None:
        """Substitute a stage into the stages that read it."""
        self._take(Step("compute_inline", (stage,)), lambda: ComputeInline(self._stage(stage)))

    def compute_root(self, stage: StageArgument) -> None:
        """Compute a stage whole, at the outermost level."""
        self._take(Step("compute_root", (stage,)), lambda: ComputeRoot(self._stage(stage)))

    def reverse_compute_inline(self, stage: StageArgument) -> None:
        """Let the stage that an elementwise stage reads compute its values at once."""
        self._take(
            Step("reverse_compute_inline", (stage,)),
            lambda: ReverseComputeInline(self._stage(stage)),
        )

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

    def pad_storage(self, buffer: StageArgument, axis: int, by: int) -> None:
        """Set the rows of an owned buffer apart: ``by`` spare elements along an axis in memory."""
        axis, by = _whole(axis), _whole(by)
        self._take(
            Step("pad_storage", (buffer, axis, by)),
            lambda: PadStorage(self._tensor(buffer), axis, by),
        )

    def swizzle(self, buffer: StageArgument, axis: int, bits: int) -> None:
        """Rotate blocks of ``2 ** bits`` positions along an axis, by one more in each row."""
        axis, bits = _whole(axis), _whole(bits)
        self._take(
            Step("swizzle", (buffer, axis, bits)),
            lambda: Swizzle(self._tensor(buffer), axis, bits),
        )

    def storage_fold(self, buffer: StageArgument, axis: int, size: int) -> None:
        """Keep ``size`` positions of an axis in memory, used again and again in a circle."""
        axis, size = _whole(axis), _whole(size)
        self._take(
            Step("storage_fold", (buffer, axis, size)),
            lambda: StorageFold(self._tensor(buffer), axis, size),
        )

    def prefetch(
        self,
        tensor: StageArgument,
        at: LoopArgument,
        ahead: int = 1,
        *,
        along: LoopArgument | None = None,
        locality: int = 3,
    ) -> None:
        """Ask the caches, in each iteration of ``at``, for what a later one uses of a tensor.

        ``ahead`` is how many iterations later, of the loop ``along`` (``at`` itself, or one around
        it); ``locality`` 3 keeps the data in every cache, 2 from the second on, 1 from the third
        on, 0 is for data that is used once.
        """
        ahead, locality = _whole(ahead), _whole(locality)
        keywords: dict[str, Any] = {"at": at, "ahead": ahead}
        if along is not None:
            keywords["along"] = along
        if locality != 3:
            keywords["locality"] = locality

        def primitive() -> Primitive:
            loop = self._loop(at)
            counted = loop if along is None else self._loop(along)
            return Prefetch(self._tensor(tensor), loop, ahead, counted, locality)

        self._take(Step("prefetch", (tensor,), keywords), primitive)

    def stream(self, buffer: StageArgument) -> None:
        """Write the vectors of a buffer past the caches, for data that nobody reads soon."""
        self._take(Step("stream", (buffer,)), lambda: Stream(self._tensor(buffer)))

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
        from tensorlang.schedule.place_barriers import place_barriers
        from tensorlang.schedule.place_inits import place_inits

        evidence = prove(place_barriers(place_inits(self.program)))
        if not evidence.ok:
            failed = next(item for item in evidence.claims if not item.holds)
            refusal = Refusal(
                f"the program does not provably compute {self.definition.name}: {failed.name}",
                "s.undo() takes back the last step",
                counterexample=str(failed.counterexample),
            )
            raise self._error(refusal, "verify()")
        return evidence

    def explain(self, target: str = "cpu", **sizes: int) -> Explanation:
        """Return what the program costs as it stands; it prints as tables.

        Per loop the iterations, the bytes that one iteration touches with the cache that holds
        them, and the strides of the accesses; per stage how often it runs, and how often each
        element is computed; the bytes between caches and memory, and the least time that the
        target's arithmetic and memory allow. ``sizes`` are put in for those that are not fixed;
        without numbers, counts are forms over the sizes, and there is no bound.

        Raises ScheduleError for a name that is no size of the operator.
        """
        from tensorlang.schedule.explain import explain
        from tensorlang.targets.cpu import parse_cpu_target

        named = {size.name: size for size in self.definition.sizes}
        for name in sizes:
            if name not in named:
                known = ", ".join(named) or "none: all are fixed"
                raise self._error(
                    Refusal(f"{name} is no size of {self.definition.name}", f"its sizes: {known}"),
                    "explain()",
                )
        values = {named[name]: index(value) for name, value in sizes.items()}
        return explain(self.program, parse_cpu_target(target), values)

    def _repr_html_(self) -> str:
        from tensorlang.ir.html import program_html

        return program_html(str(self))

    def default(self, target: str = "cpu", sizes: Mapping[str, int] | None = None) -> Self:
        """Apply the rules' steps to an untouched schedule; returns the schedule itself.

        The rules choose for the vectors, registers and caches of ``target``'s processor. They make
        use of what ``assume`` said before. ``sizes`` (``{"M": 31, "N": 1000}``, all that are
        symbolic) are those of the calls to come: the schedule is right for others, too, as far as
        the assumptions go that it then makes, but it is the best for these.
        """
        from tensorlang.schedule.rules import chooser

        if any(step.name != "assume" for step in self._steps):
            raise self._error(
                Refusal("the schedule has steps already", "tl.schedule(op).default()"), "default()"
            )
        if sizes is None:
            return self.default_version(None, target)
        missing = [size.name for size in self.definition.sizes if size.name not in sizes]
        if missing:
            raise self._error(
                Refusal(f"sizes= lacks {', '.join(missing)}", "give every symbolic size"),
                "default()",
            )
        choices = chooser(self.definition, target).choose(sizes)
        open_choices = [choice for choice in choices if not choice.fixed]
        return self.default_version(open_choices[0] if open_choices else None, target)

    def default_version(self, choice: Choice | None, target: str = "cpu") -> Self:
        """Apply the rules' steps for a version that a ``chooser`` chose; None: the general.

        For the code that makes the versions; ``default`` is for everybody.
        """
        from tensorlang.schedule.rules import apply_rules

        self._applying_rules = True
        try:
            for assumption in () if choice is None else choice.assumptions:
                self.assume(assumption)
            apply_rules(self, target, choice)
        finally:
            self._applying_rules = False
        return self

    def to_python(self) -> str:
        """Return Python source that rebuilds the schedule."""
        return to_python(self.definition.name, self._fixed, self.trace)

    def to_json(self) -> str:
        """Return the schedule, with its definition, as JSON text.

        Raises ScheduleError for attributes that are no numbers, strings, None or tuples of these.
        """
        from tensorlang.ir.serialize import attribute_to_json, definition_to_json

        attributes = dict(self.definition.attributes)
        try:
            document = {
                "tensorlang_schedule": JSON_VERSION,
                "definition": definition_to_json(self.definition),
                "fixed": {
                    # a dtype is known to the definition by its name
                    name: attribute_to_json(name, attributes.get(name, value))
                    for name, value in self._fixed.items()
                },
                "steps": [step.to_json() for step in self._steps],
            }
        except ValueError as error:
            raise ScheduleError(f"{self.definition.name}: {error}") from None
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """Rebuild a schedule from :meth:`to_json`'s text; raises ScheduleError for other text."""
        from tensorlang.ir.deserialize import attribute_from_json, definition_from_json
        from tensorlang.ir.verify import VerificationError, verify_definition, verify_scheduled

        try:
            document = json.loads(text)
            if document["tensorlang_schedule"] != JSON_VERSION:
                raise ValueError(f"version {document['tensorlang_schedule']!r} is not known")
            definition = definition_from_json(document["definition"])
            steps = [step_from_json(step) for step in document["steps"]]
            fixed: dict[str, Any] = document["fixed"]
            if not isinstance(fixed, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{fixed!r} are no sizes and attributes by name")
            fixed = {name: attribute_from_json(value) for name, value in fixed.items()}
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ScheduleError(f"this is no saved schedule: {error}") from None
        try:
            verify_definition(definition)
            schedule = cls(definition, fixed)
            verify_scheduled(schedule.program)
        except VerificationError as error:
            raise ScheduleError(f"this is no saved schedule: {error}") from None
        # Nobody traced the definition: that its indices stay inside is to be proved.
        schedule._is_read = True
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

    def _replay(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.name not in STEPS:
                raise ScheduleError(f"a saved schedule has no step {step.name!r}")
            try:
                getattr(self, step.name)(*step.arguments, **step.keywords)
            except TypeError as error:
                raise ScheduleError(f"the step {step} does not fit: {error}") from None


def _whole(number: Any) -> Any:
    """Return an integer of any kind (``np.int64(8)``) as an int, anything else as it is."""
    try:
        return number if isinstance(number, bool) else index(number)
    except TypeError:
        return number


STEPS = (
    "split", "tile", "fuse", "reorder", "peel", "parallel", "vectorize", "unroll", "bind",
    "compute_at", "compute_inline", "compute_root", "reverse_compute_at",
    "reverse_compute_inline",
    "cache_read", "cache_write", "layout", "pad_storage", "swizzle",
    "storage_fold", "prefetch", "stream", "rfactor",
    "decompose_reduction", "assume", "annotate",
)  # fmt: skip
"""The names of the primitives: what a saved schedule may hold."""
