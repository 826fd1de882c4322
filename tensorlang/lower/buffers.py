"""Flat buffers for tensors: where an element of each lies.

Input:  ``A: f32[M, K]`` given with unit inner stride
Output: ``Buffer(A)``, and ``A[i, k]`` lies at ``A.stride0 * i + k``; ``A.stride0`` is a new size
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tensorlang.errors import CompileError
from tensorlang.ir.affine import ONE, ZERO, Affine, Min, Var, affine, maximum
from tensorlang.ir.definition import Tensor
from tensorlang.ir.lowered import Buffer
from tensorlang.ir.program import Alloc
from tensorlang.lower.storage import has_gaps, physical_index, physical_shape

ArrayLayout: TypeAlias = Literal["contiguous", "inner", "any"]
"""What is known of an array that the caller passes: row-major without gaps, unit stride along the
last axis, or nothing."""

TEMPORARY_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Home:
    """Where a tensor's elements live: a buffer, and its strides (in elements).

    ``alloc`` is set for storage that the program owns.
    """

    buffer: Buffer
    strides: tuple[Affine, ...]
    alloc: Alloc | None = None

    def offset(self, indices: tuple[Affine, ...]) -> Affine:
        """Return the place of the element with logical ``indices``."""
        if self.alloc is not None:
            indices = physical_index(self.alloc, indices)
        place = ZERO
        for index, stride in zip(indices, self.strides, strict=True):
            place = place + index * stride
        return place

    def new_sizes(self) -> Iterator[Var]:
        """Yield the strides that are sizes of their own, outermost first."""
        if self.alloc is None:
            for stride in self.strides:
                for atom, _ in stride.terms:
                    if isinstance(atom, Var) and atom.name.startswith(f"{self.buffer.name}.stride"):
                        yield atom


def caller_home(tensor: Tensor, layout: ArrayLayout) -> Home:
    """Return where the elements of an input or output lie."""
    rank = len(tensor.shape)
    strides = row_major_strides(tensor.shape)
    if layout != "contiguous":
        strides = tuple([affine(Var(f"{tensor.name}.stride{axis}")) for axis in range(rank)])
        if layout == "inner" and rank:
            strides = (*strides[:-1], ONE)
    if layout == "contiguous":
        size = _product(tensor.shape)
    else:
        size = ONE
        for extent, stride in zip(tensor.shape, strides, strict=True):
            size = size + (extent - 1) * stride
        size = maximum(size, ZERO)  # an empty array may have any strides
    alignment = tensor.dtype.bits // 8
    return Home(Buffer(tensor.name, tensor.dtype, size, "global", alignment), strides)


def owned_home(alloc: Alloc) -> Home:
    """Return where the elements of storage that the program owns lie.

    Raises CompileError for "local" storage without a constant size.
    """
    shape = physical_shape(alloc)
    if alloc.scope == "local":
        shape = tuple([_constant_extent(alloc, extent) for extent in shape])
    tensor = alloc.tensor
    buffer = Buffer(
        tensor.name,
        tensor.dtype,
        _product(shape),
        alloc.scope,
        TEMPORARY_ALIGNMENT,
        gaps=alloc.scope == "global" and has_gaps(alloc),
    )
    return Home(buffer, row_major_strides(shape), alloc)


def row_major_strides(shape: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Return the distance between neighbours along each axis, the last axis being contiguous."""
    strides: list[Affine] = []
    stride = ONE
    for extent in reversed(shape):
        strides.append(stride)
        stride = stride * extent
    return tuple(reversed(strides))


def _product(shape: tuple[Affine, ...]) -> Affine:
    size = ONE
    for extent in shape:
        size = size * extent
    return size


def _constant_extent(alloc: Alloc, extent: Affine) -> Affine:
    """Return the extent, or a constant that it never exceeds."""
    if extent.is_constant:
        return extent
    if len(extent.terms) == 1 and isinstance(extent.terms[0][0], Min) and extent.terms[0][1] == 1:
        limits = [form.constant for form in extent.terms[0][0].operands if form.is_constant]
        if limits:
            return affine(min(limits) + extent.constant)
    box = ", ".join(map(str, alloc.shape))
    raise CompileError(
        f"{alloc.tensor.name} is allocated in registers (scope 'local') with the extents ({box}), "
        f"but registers need a constant size: {extent} is not known when compiling.\n"
        "Fix the size (tl.schedule(op, N=...)), split the loop and allocate inside it, "
        "or use scope='global'."
    )
