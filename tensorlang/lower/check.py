"""A check of the passes themselves: the same instances run before and after.

Input:  the program before and after ``bound_loops``, and sizes ``{M: 7}``
Output: nothing, or an AssertionError that names the first instance that differs

Small sizes show every mistake in an index-set transformation that large ones would, so enumeration
is enough, and it does not share a line of code with the passes. Used by tests and when debugging.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tensorlang.ir.affine import Affine, Var, evaluate
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import (
    Alloc,
    Barrier,
    Compute,
    For,
    Fused,
    If,
    Part,
    Prefetch,
    Program,
    Seq,
    Stmt,
)


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a stage that runs: its tensors, its part, and the values of its binding."""

    tensors: tuple[Tensor, ...]
    part: Part
    values: tuple[int, ...]

    def is_inside(self, shape: tuple[int, ...]) -> bool:
        """Tell whether it writes inside its tensor."""
        return all(0 <= value < extent for value, extent in zip(self.values, shape, strict=False))

    def __str__(self) -> str:
        return f"{self.tensors[0].name}[{', '.join(map(str, self.values))}] ({self.part})"


def instances(program: Program, sizes: Mapping[Var, int]) -> list[Instance]:
    """Return the instances that ``program`` runs, in order (parallel loops in index order)."""
    return list(_run(program.body, dict(sizes)))


def check_same_instances(before: Program, after: Program, sizes: Mapping[Var, int]) -> None:
    """Raise AssertionError unless both programs run the same instances in the same order.

    ``after`` may run further instances that lie outside their tensors.
    """
    wanted = instances(before, sizes)
    found = instances(after, sizes)
    if found != wanted:
        found = [instance for instance in found if _is_inside(instance, sizes)]
        wanted = [instance for instance in wanted if _is_inside(instance, sizes)]
    for number, (old, new) in enumerate(zip(wanted, found, strict=False)):
        if old != new:
            raise AssertionError(f"step {number} runs {new} instead of {old}, for {dict(sizes)}")
    if len(wanted) != len(found):
        extra = (wanted if len(wanted) > len(found) else found)[min(len(wanted), len(found))]
        verb = "does not run" if len(wanted) > len(found) else "also runs"
        raise AssertionError(f"the program {verb} {extra}, for {dict(sizes)}")


def _is_inside(instance: Instance, sizes: Mapping[Var, int]) -> bool:
    return instance.is_inside(tuple([evaluate(form, sizes) for form in instance.tensors[0].shape]))


def _run(stmt: Stmt, values: dict[Var, int]) -> Iterator[Instance]:
    match stmt:
        case Seq():
            for child in stmt.stmts:
                yield from _run(child, values)
        case For():
            for value in range(evaluate(stmt.extent, values)):
                yield from _run(stmt.body, {**values, stmt.variable: value})
        case Fused():
            yield from _run_fused(stmt, values)
        case Alloc():
            yield from _run(stmt.body, values)
        case Barrier() | Prefetch():
            pass
        case If():
            if _holds(stmt.condition, values):
                yield from _run(stmt.then, values)
            elif stmt.otherwise is not None:
                yield from _run(stmt.otherwise, values)
        case Compute():
            if _holds(stmt.guard, values):
                binding = tuple([evaluate(form, values) for form in stmt.binding])
                yield Instance(stmt.stage.tensors, stmt.part, binding)
        case _:
            raise TypeError(f"{type(stmt).__name__} is not a statement of a scheduled program")


def _run_fused(loop: Fused, values: dict[Var, int]) -> Iterator[Instance]:
    points: list[dict[Var, int]] = [{}]
    for variable, extent in zip(loop.variables, loop.extents, strict=True):
        count = evaluate(extent, values)
        points = [{**point, variable: value} for point in points for value in range(count)]
    if loop.run is not None:
        first = values[loop.run.chunk] * loop.run.size
        points = points[first : first + loop.run.size]
    for point in points:
        yield from _run(loop.body, {**values, **point})


def _holds(forms: tuple[Affine, ...], values: Mapping[Var, int]) -> bool:
    return all(evaluate(form, values) >= 0 for form in forms)
