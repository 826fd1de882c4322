"""From a point that isl found to words: sizes, loop values, the instance and its accesses.

Input:  the sample ``[p0 = 1, p1 = 0] -> S3[0, 5]``
Output: a ``Counterexample`` with ``M = 1, N = 0``, ``i.o = 0, i.i = 5`` and ``C[i=5] += ...``
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import islpy as isl

from tensorlang.ir.affine import Affine, Var, affine, evaluate
from tensorlang.ir.printer import format_compute
from tensorlang.ir.program import Compute
from tensorlang.poly.access import Access
from tensorlang.poly.domain import Instance, Nest


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """Why a claim does not hold, or could not be proved (``refuted`` is False).

    ``sizes`` and ``loops`` are the values of one case in which it fails; ``accesses`` says what
    happens there in words; ``compute`` is the statement concerned.
    """

    claim: str
    reason: str
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    loops: dict[str, int] = field(default_factory=dict[str, int])
    accesses: tuple[str, ...] = ()
    compute: Compute | None = None
    refuted: bool = True

    def __str__(self) -> str:
        lines = [self.reason]
        if self.sizes:
            lines.append(f"sizes:  {_assignments(self.sizes)}")
        if self.loops:
            lines.append(f"loops:  {_assignments(self.loops)}")
        lines.extend(f"        {access}" for access in self.accesses)
        if self.compute is not None:
            lines.append(f"in:     {format_compute(self.compute)}")
        return "\n".join(lines)


def _assignments(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Sample:
    """Values of the sizes, and the coordinates of one point (those of a wrapped pair in a row).

    ``is_real`` is False when a product of sizes was taken for a size of its own and the sample
    gives it a value that it cannot have: then nothing is refuted, only not proved.
    """

    sizes: dict[Var, int]
    coordinates: tuple[int, ...]
    tags: tuple[str, ...]
    is_real: bool = True

    def values(self, instance: Instance, start: int = 0) -> dict[Var, int]:
        """Return sizes and the loops of ``instance``, whose coordinates begin at ``start``."""
        point = self.coordinates[start : start + len(instance.variables)]
        return {**self.sizes, **dict(zip(instance.variables, point, strict=True))}


_SMALL_SIZES = (3, 20, 200)


def sample(nest: Nest, points: isl.Set | isl.UnionSet) -> Sample:
    """Return one point of a set that is not empty, with small sizes where there are such."""
    single = _first_set(points)
    names = list(nest.parameters.atoms.values())
    for limit in _SMALL_SIZES:
        text = " and ".join(f"{name} <= {limit}" for name in names) or "true"
        small = single.intersect_params(
            isl.Set.read_from_str(
                nest.parameters.context, f"{nest.parameters.prefix}{{ : {text} }}"
            )
        )
        if not small.is_empty():
            single = small
            break
    single = single.align_params(nest.parameters.assumptions.get_space())
    point = single.sample_point()
    count = single.dim(isl.dim_type.param)
    by_name = {
        single.get_dim_name(isl.dim_type.param, n): _value(point, isl.dim_type.param, n)
        for n in range(count)
    }
    sizes = {
        atom: by_name[name] for atom, name in nest.parameters.atoms.items() if isinstance(atom, Var)
    }
    coordinates = tuple(
        _value(point, isl.dim_type.set, n) for n in range(single.dim(isl.dim_type.set))
    )
    is_real = all(
        evaluate(affine(atom), sizes) == by_name[name]
        for atom, name in nest.parameters.atoms.items()
    )
    return Sample(sizes, coordinates, _tags(single), is_real)


def _value(point: isl.Point, kind: isl.dim_type, position: int) -> int:
    return int(point.get_coordinate_val(kind, position).to_python())


def _first_set(points: isl.Set | isl.UnionSet) -> isl.Set:
    if isinstance(points, isl.Set):
        return points
    found: list[isl.Set] = []
    points.foreach_set(found.append)
    return next(part for part in found if not part.is_empty())


def _tags(points: isl.Set) -> tuple[str, ...]:
    space = points.get_space()
    if space.is_wrapping():
        inner = space.unwrap()
        return (
            inner.get_tuple_name(isl.dim_type.in_) or "",
            inner.get_tuple_name(isl.dim_type.out) or "",
        )
    return (points.get_tuple_name() or "",)


def instance_of_tag(nest: Nest, tag: str) -> Instance | None:
    """Return the instance set whose points a tag names: ``S3``, ``W3_0``, ``R3_2``, not ``X0``."""
    if tag[:1] not in ("S", "W", "R"):
        return None
    return nest.instances[int(tag[1:].split("_")[0])]


def named_sizes(sizes: Mapping[Var, int]) -> dict[str, int]:
    """Return values of sizes by name."""
    return {variable.name: value for variable, value in sizes.items()}


def named_loops(instance: Instance, values: Mapping[Var, int], mark: str = "") -> dict[str, int]:
    """Return the values of the loops by name; a name used twice gets a number."""
    result: dict[str, int] = {}
    for variable in instance.variables:
        name, count = variable.name + mark, 1
        while name in result:
            count += 1
            name = f"{variable.name}{mark} ({count})"
        result[name] = values[variable]
    return result


def describe_instance(instance: Instance, values: Mapping[Var, int]) -> str:
    """Return ``C[i=3, j=0, k=7]``, with what it is if not the whole."""
    stage, compute = instance.compute.stage, instance.compute
    parts = [
        f"{axis.variable}={evaluate(index, values)}"
        for axis, index in zip(stage.all_axes, compute.binding, strict=False)
    ]
    role = {"init": "the init of ", "update": "the update "}.get(compute.part, "")
    if instance.is_copy:
        role = f"the copy of {stage.copies} in "
    return f"{role}{stage.name}[{', '.join(parts)}]"


def describe_access(access: Access, values: Mapping[Var, int], verb: str) -> str:
    """Return ``C[i=3] reads A.local[3, 0]``."""
    indices = [_evaluated(index, values) for index in access.indices]
    place = access.storage.tensor.name
    cell = f"{place}[{', '.join(indices) or '()'}]"
    return f"{describe_instance(access.instance, values)} {verb} {cell}"


def _evaluated(index: Affine | None, values: Mapping[Var, int]) -> str:
    return "?" if index is None else str(evaluate(index, values))


def witness_of_instance(
    nest: Nest,
    claim: str,
    reason: str,
    instance: Instance,
    found: Sample,
    accesses: tuple[str, ...] = (),
    start: int = 0,
) -> Counterexample:
    """Return the counterexample for a point of ``instance``."""
    values = found.values(instance, start)
    return Counterexample(
        claim,
        reason,
        named_sizes(found.sizes),
        named_loops(instance, values),
        accesses or (describe_instance(instance, values),),
        instance.compute,
        refuted=found.is_real,
    )


def witness_of_pair(
    nest: Nest, claim: str, reason: str, pairs: isl.UnionMap, link: str
) -> Counterexample:
    """Return the counterexample for one of ``pairs``: two instances, joined by ``link``."""
    found = sample(nest, pairs.wrap())
    first, second = (instance_of_tag(nest, tag) for tag in found.tags)
    assert first is not None
    assert second is not None
    one, other = found.values(first), found.values(second, len(first.variables))
    return Counterexample(
        claim,
        reason,
        named_sizes(found.sizes),
        {**named_loops(first, one), **named_loops(second, other, "'")},
        (describe_instance(first, one), f"{link} {describe_instance(second, other)}"),
        first.compute,
        refuted=found.is_real,
    )
