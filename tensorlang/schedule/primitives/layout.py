"""layout: how a buffer that the program owns lies in memory.

Before                              After ``layout("B.local", lambda k, n: (n // 16, k, n % 16))``
::

    B.local = global f32[K, N]          B.local = global f32[K, N]
                                            laid out (k, n) -> (n // 16, k, n % 16)

Legal where two elements never get the same place. Places that no element has are zero where the
layout's shape rounds up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, AffineLike, FloorDiv, Var, affine, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.interval import bounds
from tensorlang.ir.program import Alloc, Layout, Program
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import find_alloc, replace_stmt

LayoutMap = Callable[..., AffineLike | tuple[AffineLike, ...]]


@dataclass(frozen=True, slots=True)
class SetLayout:
    """Lay out the storage of ``tensor``: ``variables`` stand for the position in its box."""

    tensor: Tensor
    variables: tuple[Var, ...]
    indices: tuple[Affine, ...]

    def check(self, program: Program) -> None:
        """Refuse the caller's arrays, maps of the wrong rank, and maps that are not one-to-one."""
        alloc = require_owned(program, self.tensor)
        if alloc.layout is not None:
            raise Refusal(f"{self.tensor} has a layout already", "s.undo() takes it back")
        if len(self.variables) != len(self.tensor.shape):
            raise Refusal(
                f"the map takes {len(self.variables)} positions, and {self.tensor} has "
                f"{len(self.tensor.shape)} axes",
                "one argument an axis",
            )
        shape = self._shape(alloc)
        if shape is None:
            raise Refusal(
                f"the places of {self.tensor} have no bounds",
                "a map made of + - * // % with constants",
            )
        require_still(program, self.tensor, shape, self.variables)
        if not self._is_plainly_injective(alloc):
            self._require_injective(program)

    def apply(self, program: Program) -> Outcome:
        """Return the program with the layout attached to the storage."""
        alloc = find_alloc(program.body, self.tensor)
        assert alloc is not None
        shape = self._shape(alloc)
        assert shape is not None
        new = replace(alloc, layout=Layout(self.variables, self.indices, shape))
        return Outcome(replace(program, body=replace_stmt(program.body, alloc, new)))

    def _extents(self, alloc: Alloc) -> dict[Var, Affine]:
        return dict(zip(self.variables, alloc.shape, strict=True))

    def _shape(self, alloc: Alloc) -> tuple[Affine, ...] | None:
        extents = self._extents(alloc)
        shape: list[Affine] = []
        for index in self.indices:
            interval = bounds(index, extents)
            if interval is None:
                return None
            shape.append(interval[1] + 1)
        return tuple(shape)

    def _is_plainly_injective(self, alloc: Alloc) -> bool:
        """Whether every variable can be read off: as itself, or as quotient and remainder."""
        for variable, extent in self._extents(alloc).items():
            if affine(variable) in self.indices or extent == affine(1):
                continue
            if not any(
                affine(variable) % d in self.indices and affine(variable) // d in self.indices
                for d in self._divisors()
            ):
                return False
        return True

    def _divisors(self) -> set[int]:
        return {
            atom.divisor
            for index in self.indices
            for atom, _ in index.terms
            if isinstance(atom, FloorDiv)
        }

    def _require_injective(self, program: Program) -> None:
        from tensorlang.poly.legality import find_layout_fault

        fault = find_layout_fault(self.apply(program).program)
        if fault is not None:
            raise Refusal(
                f"the map does not give each element of {self.tensor} a place of its own",
                "a one-to-one map, such as lambda k, n: (n // 16, k, n % 16)",
                counterexample=str(fault),
            )


def require_owned(program: Program, tensor: Tensor) -> Alloc:
    """Return the storage of a buffer that the program owns; refuse the caller's arrays."""
    alloc = find_alloc(program.body, tensor)
    if alloc is None:
        step = "cache_write" if tensor in program.definition.outputs else "cache_read"
        raise Refusal(
            f"{tensor} belongs to the caller, and its layout is given",
            f's.{step}("{tensor}", at=...) makes a copy that may be laid out',
        )
    return alloc


def require_still(
    program: Program,
    tensor: Tensor,
    shape: tuple[Affine, ...],
    variables: tuple[Var, ...] = (),
) -> None:
    """Refuse a layout of a box that is not as large in every iteration of the loops around it."""
    changing = {v for form in shape for v in variables_of(form)}
    changing -= {*program.definition.sizes, *variables}
    if changing:
        raise Refusal(
            f"the box of {tensor} has a shape that changes with "
            f"{', '.join(sorted(map(str, changing)))}",
            "lay out a buffer whose shape depends on sizes alone",
        )


def trace_layout(rank: int, layout_map: LayoutMap) -> tuple[tuple[Var, ...], tuple[Affine, ...]]:
    """Return the variables and indices of a map given as a function of positions."""
    code = getattr(layout_map, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    if not names:
        names = tuple(f"p{n}" for n in range(rank))
    variables = tuple(Var(name) for name in names)
    result = layout_map(*[affine(variable) for variable in variables])
    indices: tuple[object, ...] = result if isinstance(result, tuple) else (result,)
    return variables, tuple(_as_index(index) for index in indices)


def _as_index(value: object) -> Affine:
    if isinstance(value, Affine | int) and not isinstance(value, bool):
        return affine(value)
    raise TypeError(f"{value!r} is no position")
