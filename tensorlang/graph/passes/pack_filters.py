"""pack_filters: constant filters of convolutions lie as the convolution's tiles read them.

Before                              After (512-bit vectors, f32)
::

    w: f32[64, 32, 3, 3]                w/packed: f32[2, 2, 3, 3, 16, 32]
    sum(x[...] * w[o, c, r, s])         sum(x[...] * w/packed[o//32, c//16, r, s, c%16, o%32])

The default schedule of a convolution copies its filters into panels at each call; those that are
constant are laid out once, and the schedule reads them in place.
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
from tensorlang.schedule.rules.convolution import CHANNELS, is_wide, tile_of
from tensorlang.schedule.rules.machine import Machine, machine_of
from tensorlang.schedule.rules.windows import as_convolution


@graph_pass(level=2)
def pack_filters(program: GraphProgram) -> GraphProgram:
    """Lay out the constant filters of convolutions in panels of output channels."""
    return pack_constants(program, partial(_packed_stage, machine=machine_of(program.target)))


def _packed_stage(stage: Stage, constants: Constants, *, machine: Machine) -> Stage | None:
    """Return the stage reading packed filters; None if it is no convolution with constant ones."""
    convolution = as_convolution(stage)
    if convolution is None or not is_wide(stage, convolution, machine):
        return None
    load = convolution.filters
    taps, channels = convolution.taps, convolution.channels
    variables = [stage.axes[convolution.output].variable]
    variables += [axis.variable for axis in (*channels, *taps)]
    forms = [affine(variable) for variable in variables]
    known = load.tensor in constants and len(channels) == 1
    if not known or sorted(map(str, load.indices)) != sorted(map(str, forms)):
        return None
    if not all(index in forms for index in load.indices):
        return None
    width = tile_of(stage, convolution, machine).vectors * machine.lanes(stage.tensor.dtype)
    if convolution.share is not None and convolution.share % width:
        return None
    places = [load.indices.index(form) for form in forms]
    array = pack(constants[load.tensor].array.transpose(places), width, CHANNELS)
    shape = tuple([affine(extent) for extent in array.shape])
    packed = Tensor(f"{load.tensor.name}/packed", shape, load.tensor.dtype)
    constants[packed] = Constant(packed, array)
    output, channel, *rest = forms
    indices = (
        output // width, channel // CHANNELS, *rest, channel % CHANNELS, output % width
    )  # fmt: skip

    return reading(stage, load, packed, indices)


def pack(filters: np.ndarray[Any, Any], width: int, depth: int) -> np.ndarray[Any, Any]:
    """Return ``[O, C, ...]`` as ``[ceil(O / width), ceil(C / depth), ..., depth, width]``.

    What lies beyond the last output and the last channel is zero.
    """
    outputs, channels, *taps = filters.shape
    panels, blocks = -(-outputs // width), -(-channels // depth)
    padded = np.zeros((panels * width, blocks * depth, *taps), filters.dtype)
    padded[:outputs, :channels] = filters
    split = padded.reshape(panels, width, blocks, depth, *taps)
    last = split.ndim
    packed = np.ascontiguousarray(split.transpose(0, 2, *range(4, last), 3, 1))
    packed.flags.writeable = False
    return packed
