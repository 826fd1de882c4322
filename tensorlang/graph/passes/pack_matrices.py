"""pack_matrices: constant matrices lie in the panels that the tiles of a product read.

Before                              After (512-bit vectors, f32)
::

    B: f32[768, 768]                    B/packed: f32[16, 768, 48]
    sum(x[i, k] * B[k, j])              sum(x[i, k] * B/packed[j // 48, k, j % 48])

The default schedule of a product copies its columns' operand into panels at each call; one that is
constant is laid out once, and the schedule reads it in place. A product of few rows then reads it
from one end to the other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tensorlang.graph.passes.pack_constants import Constants, pack_constants, reading
from tensorlang.graph.passes.registry import graph_pass
from tensorlang.graph.program import Constant, GraphProgram
from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.schedule.rules.contraction import plan_product
from tensorlang.schedule.rules.facts import Facts
from tensorlang.schedule.rules.kinds import as_contraction
from tensorlang.schedule.rules.machine import Machine, machine_of
from tensorlang.schedule.rules.windows import as_convolution


@graph_pass(level=2)
def pack_matrices(program: GraphProgram) -> GraphProgram:
    """Lay out the constant matrices of products in panels of columns."""
    return pack_constants(program, partial(_packed_stage, machine=machine_of(program.target)))


def _packed_stage(stage: Stage, constants: Constants, *, machine: Machine) -> Stage | None:
    """Return the stage reading a packed matrix; None if it is no product with a constant one."""
    contraction = as_contraction(stage)
    if contraction is None or as_convolution(stage) is not None:
        return None
    load = contraction.column_operand
    columns = stage.axes[-1]
    lanes = machine.lanes(stage.tensor.dtype)
    sums = [affine(axis.variable) for axis in stage.reduction_axes]
    forms = [affine(columns.variable), *sums]
    if load.tensor not in constants or not columns.extent.is_constant:
        return None
    if columns.extent.constant < lanes or sorted(map(str, load.indices)) != sorted(map(str, forms)):
        return None
    rows = Facts().range_of(stage.axes[contraction.rows[-1]].extent)
    extent = Facts().range_of(columns.extent)
    width = plan_product(stage, contraction, machine, rows, extent).tile.vectors * lanes
    places = [[str(index) for index in load.indices].index(str(form)) for form in forms]
    array = pack(constants[load.tensor].array.transpose(places), width)
    shape = tuple([affine(size) for size in array.shape])
    packed = Tensor(f"{load.tensor.name}/packed", shape, load.tensor.dtype)
    constants[packed] = Constant(packed, array)
    column = forms[0]
    return reading(stage, load, packed, (column // width, *sums, column % width))


def pack(matrix: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """Return ``[N, K...]`` as ``[ceil(N / width), K..., width]``; beyond the columns is zero."""
    columns, *sums = matrix.shape
    panels = -(-columns // width)
    padded = np.zeros((panels * width, *sums), matrix.dtype)
    padded[:columns] = matrix
    split = padded.reshape(panels, width, *sums)
    packed = np.ascontiguousarray(np.moveaxis(split, 1, -1))
    packed.flags.writeable = False
    return packed
