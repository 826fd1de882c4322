"""Threads of one block, which are ordered by barriers and by nothing else.

Input:  a program with loops bound to threads, and its barriers
Output: nothing, or two threads that touch one element, one of them writing it, with no barrier
between the two

An iteration of a loop outside the nests of threads is run by all threads, each at its own time: a
thread may be in the next iteration, or in the next nest, while another is still in this one. So two
accesses by different threads are ordered iff a barrier lies between them in the program's order.
Shared memory is the same memory in each iteration of the loops around its ``Alloc``: elements are
compared by their place in it. Registers are not seen by other threads, whatever barriers there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import islpy as isl

from tensorlang.ir.affine import Affine, Var, evaluate
from tensorlang.ir.program import BLOCK_AXES, THREAD_AXES, Compute, For, Fused, LoopKind, Program
from tensorlang.poly.access import Access, Accesses
from tensorlang.poly.conflict import branch_condition
from tensorlang.poly.domain import Crossing, Instance, Loop, Nest, Place, Storage
from tensorlang.poly.isl_text import NotProvedError, form_text, holds_text, limited
from tensorlang.poly.witness import (
    Counterexample,
    describe_access,
    named_loops,
    named_sizes,
    sample,
)

CLAIM = "threads"
QUESTION_BUDGET = 2_000_000

Names = Mapping[Var, str]


def has_threads(nest: Nest) -> bool:
    """Tell whether a program has loops that are bound to threads."""
    return any(
        place.axis in THREAD_AXES
        for instance in nest.instances
        for loop in instance.loops
        for place in loop.places
    )


# --- what is asked before barriers are placed ----------------------------------------------------


class Meetings:
    """Answers whether threads may meet, for pairs of statements of one program without barriers."""

    def __init__(self, program: Program) -> None:
        self._accesses = Accesses(Nest(program))
        self._by_compute: dict[Compute, list[tuple[Access, bool]]] = {}
        for access, writes in _all_accesses(self._accesses):
            if _is_shared(access):
                self._by_compute.setdefault(access.instance.compute, []).append((access, writes))

    def may_meet(self, first: Compute, second: Compute, loop: For | Fused | None) -> bool:
        """Tell whether different threads may touch one element, one writing it.

        ``second`` comes later, in the same iteration of the loops around both, or in a later one
        of ``loop``. True where it cannot be excluded.
        """
        for one, one_writes in self._by_compute.get(first, ()):
            for other, other_writes in self._by_compute.get(second, ()):
                if one.storage is not other.storage or not (one_writes or other_writes):
                    continue
                with limited(QUESTION_BUDGET):
                    try:
                        pair = _Pair(self._accesses, one, other)
                        if not pair.meeting(pair.later(loop)).is_empty():
                            return True
                    except (NotProvedError, isl.Error):
                        return True
        return False


# --- what is proved of a program with its barriers -----------------------------------------------


def find_race(accesses: Accesses) -> Counterexample | None:
    """Return two threads of a block that meet in an element without a barrier between them."""
    for barrier in accesses.nest.barriers:
        for loop in barrier.loops:
            if any(place.axis in THREAD_AXES for place in loop.places):
                return Counterexample(
                    CLAIM,
                    f"a barrier stands inside {loop.kind} loop {loop.handles[0]}, where not all "
                    "threads of a block arrive",
                )
    everything = list(_all_accesses(accesses))
    for number, (one, one_writes) in enumerate(everything):
        for other, other_writes in everything[number:]:
            if one.storage is not other.storage or not (one_writes or other_writes):
                continue
            pair, writes = _Pair(accesses, one, other), (one_writes, other_writes)
            found = pair.race(writes) if _is_shared(one) else pair.seen_registers(writes)
            if found is not None:
                return found
    return None


def _all_accesses(accesses: Accesses) -> Iterator[tuple[Access, bool]]:
    """Yield accesses of what the program writes, and whether they write."""
    for access in accesses.writes:
        yield access, True
    for access in (*accesses.reads, *accesses.copies):
        if access.storage in accesses.written:
            yield access, False


def _is_shared(access: Access) -> bool:
    """Whether all threads of a block see the storage of an access."""
    return not _is_in_registers(access.storage, access.instance)


def _is_in_registers(storage: Storage, instance: Instance) -> bool:
    """Whether each thread has storage of its own: registers, or made inside a loop of threads."""
    if storage.alloc is not None and storage.alloc.scope == "local":
        return True
    return any(
        variable in storage.prefix
        for loop in instance.loops
        if any(place.axis in THREAD_AXES for place in loop.places)
        for variable in loop.variables
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two accesses of one storage, whose loops get the names ``a0``, ... and ``b0``, ..."""

    accesses: Accesses
    one: Access
    other: Access

    @property
    def _nest(self) -> Nest:
        return self.accesses.nest

    @property
    def _first(self) -> dict[Var, str]:
        return {variable: f"a{n}" for n, variable in enumerate(self.one.instance.variables)}

    @property
    def _second(self) -> dict[Var, str]:
        return {variable: f"b{n}" for n, variable in enumerate(self.other.instance.variables)}

    def race(self, writes: tuple[bool, bool]) -> Counterexample | None:
        """Return a meeting of two threads that no barrier orders."""
        meeting = self.meeting("true")
        if meeting.is_empty():
            return None
        for barrier in self._nest.barriers:
            for ways in (self._between(barrier, True), self._between(barrier, False)):
                if ways:
                    meeting = meeting.subtract(self._set(f"({' or '.join(ways)})"))
        if meeting.is_empty():
            return None
        name = self.one.storage.tensor.name
        return self._witness(
            meeting,
            writes,
            f"two threads of a block touch one element of {name} with no barrier between them",
        )

    def seen_registers(self, writes: tuple[bool, bool]) -> Counterexample | None:
        """Return two threads that touch one element of storage in registers."""
        same = [
            f"{self._first[variable]} = {self._second[variable]}"
            for variable in self.one.storage.prefix
        ]
        meeting = self.meeting(" and ".join(same) or "true")
        if meeting.is_empty():
            return None
        storage = self.one.storage
        in_registers = storage.alloc is not None and storage.alloc.scope == "local"
        why = "lies in registers" if in_registers else "is made inside a loop of threads"
        return self._witness(
            meeting,
            writes,
            f"two threads touch one element of {storage.tensor.name}, which {why}: no thread sees "
            "those of another",
        )

    # --- sets of pairs of points ---

    def meeting(self, order: str) -> isl.Set:
        """Return the pairs of points, by different threads of one block, that meet in a cell."""
        nest, first, second = self._nest, self._first, self._second
        parts = [
            nest.constraints(self.one.instance, first),
            nest.constraints(self.other.instance, second),
            order,
        ]
        for access, names in ((self.one, first), (self.other, second)):
            branch = branch_condition(self.accesses, access, names)
            if branch is not None:
                parts.append(branch)
        parts.extend(self._same_cell())
        parts.append(self._same_block())
        parts.append(self._other_thread())
        return self._set(" and ".join(parts))

    def later(self, loop: For | Fused | None) -> str:
        """Return that the second point is later: in the next iterations of ``loop``, or in none."""
        handle = None if loop is None else loop.variable if isinstance(loop, For) else loop.handle
        parts: list[str] = []
        for common in self._common_loops():
            pairs = [(self._first[v], self._second[v]) for v in common.variables]
            if handle is not None and handle in common.handles:
                parts.append(_before(pairs))
                break
            if not any(place.axis in THREAD_AXES for place in common.places):
                parts.extend(f"{one} = {other}" for one, other in pairs)
        return " and ".join(parts) or "true"

    def _common_loops(self) -> list[Loop]:
        return [
            one
            for one, other in zip(self.one.instance.loops, self.other.instance.loops, strict=False)
            if one is other
        ]

    def _set(self, text: str) -> isl.Set:
        names = [*self._first.values(), *self._second.values()]
        return self._nest.parameters.set(f"[{', '.join(names)}] : {text}")

    def _same_cell(self) -> Iterator[str]:
        storage, parameters = self.one.storage, self._nest.parameters
        for axis, (left, right) in enumerate(
            zip(self.one.indices, self.other.indices, strict=True)
        ):
            if left is None or right is None:
                continue
            texts = [
                form_text(index - storage.origin[axis], names, parameters)
                for index, names in ((left, self._first), (right, self._second))
            ]
            yield f"{texts[0]} = {texts[1]}"

    def _same_block(self) -> str:
        parts: list[str] = []
        for loop in self.one.instance.loops:
            for place in loop.places:
                if place.axis not in BLOCK_AXES:
                    continue
                if place.form is None:
                    continue  # fused over symbolic sizes: it may be any block
                parts.append(
                    f"{self._text(place.form, self._first)} = "
                    f"{self._text(place.form, self._second)}"
                )
        return " and ".join(parts) or "true"

    def _other_thread(self) -> str:
        ways: list[str] = []
        for axis in THREAD_AXES:
            texts = (
                self._thread_text(self.one.instance, axis, self._first),
                self._thread_text(self.other.instance, axis, self._second),
            )
            if texts[0] is None or texts[1] is None:
                # Fused over symbolic sizes: any two iterations may be of different threads.
                ways.append(self._other_iteration(axis))
            elif texts != ("0", "0"):
                ways.append(f"{texts[0]} != {texts[1]}")
        return f"({' or '.join(ways)})" if ways else "false"

    def _other_iteration(self, axis: LoopKind) -> str:
        for loop in self._common_loops():
            if any(place.axis == axis for place in loop.places):
                pairs = [(self._first[v], self._second[v]) for v in loop.variables]
                return f"({' or '.join(f'{one} != {other}' for one, other in pairs)})"
        return "true"

    def _thread_text(self, instance: Instance, axis: LoopKind, names: Names) -> str | None:
        place = thread_place(instance, axis)
        if place is None:
            return "0"
        return None if place.form is None else f"({self._text(place.form, names)})"

    def _text(self, form: Affine, names: Names) -> str:
        return form_text(form, names, self._nest.parameters)

    def _between(self, barrier: Crossing, forward: bool) -> list[str]:
        """Return the ways in which a barrier is crossed after one point and before the other."""
        names = {
            variable: f"t{n}"
            for n, variable in enumerate(v for loop in barrier.loops for v in loop.variables)
        }
        bounds: list[str] = []
        for loop in barrier.loops:
            for variable, extent in zip(loop.variables, loop.extents, strict=True):
                bounds.append(f"{names[variable]} >= 0")
                bounds.append(holds_text(extent - 1 - variable, names, self._nest.parameters))
        points = [(self.one.instance, self._first), (self.other.instance, self._second)]
        (early, early_names), (late, late_names) = points if forward else reversed(points)
        before = _earlier(early.time, early_names, barrier.time, names)
        after = _earlier(barrier.time, names, late.time, late_names)
        blocks = [
            f"{names[variable]} = {self._first[variable]}"
            for loop in barrier.loops
            if any(place.axis in BLOCK_AXES for place in loop.places)
            for variable in loop.variables
        ]
        if not before or not after:
            return []
        text = " and ".join([*bounds, *blocks])
        condition = f"({' or '.join(before)}) and ({' or '.join(after)})"
        if not names:
            return [condition]
        return [f"(exists {', '.join(names.values())}: {text} and {condition})"]

    # --- words ---

    def _witness(self, meeting: isl.Set, writes: tuple[bool, bool], reason: str) -> Counterexample:
        found = sample(self._nest, meeting)
        names = [*self._first.values(), *self._second.values()]
        by_name = dict(zip(names, found.coordinates, strict=True))
        lines: list[str] = []
        loops: dict[str, int] = {}
        sides = ((self.one, self._first, ""), (self.other, self._second, "'"))
        for (access, renaming, mark), is_write in zip(sides, writes, strict=True):
            values = {**found.sizes, **{v: by_name[name] for v, name in renaming.items()}}
            loops |= named_loops(access.instance, values, mark)
            verb = "writes" if is_write else "reads"
            thread = _thread_of(access.instance, values)
            lines.append(f"thread {thread}: {describe_access(access, values, verb)}")
        return Counterexample(
            CLAIM,
            reason,
            named_sizes(found.sizes),
            loops,
            tuple(lines),
            self.other.instance.compute,
            refuted=found.is_real and self._is_exact(),
        )

    def _is_exact(self) -> bool:
        """Whether indices and threads are known; where not, a meeting is only possible."""
        indices = (*self.one.indices, *self.other.indices)
        places = [
            place
            for access in (self.one, self.other)
            for loop in access.instance.loops
            for place in loop.places
        ]
        return None not in indices and all(place.form is not None for place in places)


def thread_place(instance: Instance, axis: LoopKind) -> Place | None:
    """Return where the thread that runs an iteration stands along ``axis``; None: at 0."""
    for loop in instance.loops:
        for place in loop.places:
            if place.axis == axis:
                return place
    return None


def _thread_of(instance: Instance, values: Mapping[Var, int]) -> str:
    parts: list[str] = []
    for axis in THREAD_AXES:
        place = thread_place(instance, axis)
        known = place is None or place.form is not None
        form = None if place is None else place.form
        parts.append(("0" if form is None else str(evaluate(form, values))) if known else "?")
    return f"({', '.join(parts)})"


def _before(pairs: list[tuple[str, str]]) -> str:
    """Return that the first of two vectors comes before the second."""
    ways: list[str] = []
    for position, (one, other) in enumerate(pairs):
        equal = [f"{a} = {b}" for a, b in pairs[:position]]
        ways.append(" and ".join([*equal, f"{one} < {other}"]))
    return f"({' or '.join(ways)})"


def _earlier(
    early: tuple[int | Var, ...], early_names: Names, late: tuple[int | Var, ...], late_names: Names
) -> list[str]:
    """Return the ways in which one time comes before another."""
    ways: list[str] = []
    equal: list[str] = []
    for one, other in zip(early, late, strict=False):
        if isinstance(one, int) and isinstance(other, int):
            if one < other:
                ways.append(" and ".join(equal) or "true")
            if one != other:
                return ways
        elif isinstance(one, Var) and isinstance(other, Var):
            left, right = early_names[one], late_names[other]
            ways.append(" and ".join([*equal, f"{left} < {right}"]))
            equal.append(f"{left} = {right}")
    return ways
