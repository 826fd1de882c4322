"""use_winograd: convolutions with constant 3x3 filters multiply less, where the tolerance allows.

Before                              After
::

    conv2d = conv2d(x, w)               conv2d = conv2d(x, w/winograd4)
        padded[...]                         padded[...]
        conv2d[...] = sum(...)              image, rows, columns, products, sums, pixels
                                            conv2d[...] = pixels[...]

What counts is what a stage computes, not its operator's name: it is replaced, where it stands, by
the stages of ``nn.winograd_conv2d``, and the filters by their transforms. Tiles of 4 pixels need
``rtol >= 1e-4``, tiles of 2 need 1e-5.

The estimate is of cycles: products by the multiply-adds of whole panels, filters that outgrow the
second-level cache by the bytes that are read for each image, transforms by their elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tensorlang.dtypes import f32
from tensorlang.graph.instantiate import instantiate
from tensorlang.graph.passes.registry import graph_pass
from tensorlang.graph.program import Constant, GraphProgram, Node, complete
from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Definition, Stage, Tensor
from tensorlang.nn.winograd import transformed_filters, winograd_conv2d
from tensorlang.schedule.rules.machine import Machine, machine_of
from tensorlang.schedule.rules.windows import Convolution, as_convolution

NEEDED_RTOL = {2: 1e-5, 4: 1e-4}
"""What tiles of 2 and 4 pixels may err by, relative to the spread of the output."""

_PANEL_VECTORS = 2
_EFFICIENCY = 0.85
_BYTES_A_CYCLE = 9
_CYCLES_AN_ELEMENT = 1.0
_GAIN = 0.9
"""Another algorithm must be estimated at this share of the time, or less."""


@graph_pass(level=2)
def use_winograd(program: GraphProgram) -> GraphProgram:
    """Compute 3x3 convolutions with constant filters by Winograd's algorithm where it is faster."""
    constants = {constant.tensor: constant for constant in program.constants}
    machine = machine_of(program.target)
    nodes: list[Node] = []
    for node in program.nodes:
        changed = node
        for stage in node.definition.stages:
            found = _find(stage, constants)
            tile = _choose(found, program.rtol, machine) if found is not None else None
            if found is not None and tile is not None:
                panel = _PANEL_VECTORS * machine.lanes(f32)
                replaced = _replace(changed, stage, found, constants, tile, panel)
                changed = changed if replaced is None else replaced
        nodes.append(changed)
    if nodes == list(program.nodes):
        return program
    read = {tensor for node in nodes for tensor in node.inputs}
    kept = tuple([constant for tensor, constant in constants.items() if tensor in read])
    return replace(program, nodes=tuple(nodes), constants=kept)


@dataclass(frozen=True, slots=True)
class _Found:
    """A 3x3 convolution of stride 1; sizes are those of its output, and its input channels."""

    convolution: Convolution
    batch: int
    outputs: int
    channels: int
    height: int
    width: int


def _find(stage: Stage, constants: dict[Tensor, Constant]) -> _Found | None:
    """Return what there is to know of a sum of ``x[b, c, i + r, j + s] * w[o, c, r, s]``."""
    convolution = as_convolution(stage)
    if convolution is None or len(stage.axes) != 4 or len(stage.reduction_axes) != 3:
        return None
    if len(convolution.channels) != 1 or convolution.output != 1 or convolution.pixels != (2, 3):
        return None
    b, o, i, j = [affine(axis.variable) for axis in stage.axes]
    c = affine(convolution.channels[0].variable)
    r, s = [affine(axis.variable) for axis in convolution.taps]
    if convolution.image.indices != (b, c, i + r, j + s):
        r, s = s, r
    same = convolution.image.indices == (b, c, i + r, j + s)
    if not same or convolution.filters.indices != (o, c, r, s):
        return None
    if [axis.extent for axis in convolution.taps] != [affine(3)] * 2:
        return None
    extents = [axis.extent for axis in (*stage.axes, convolution.channels[0])]
    if not all(extent.is_constant and extent.constant > 0 for extent in extents[1:]):
        return None
    dtypes = (stage.tensor.dtype, convolution.image.dtype, convolution.filters.dtype)
    if any(dtype is not f32 for dtype in dtypes):
        return None
    if convolution.filters.tensor not in constants:
        return None
    batch = extents[0].constant if extents[0].is_constant else 1
    _, outputs, height, width, channels = [extent.constant for extent in extents]
    return _Found(convolution, max(1, batch), outputs, channels, height, width)


def _choose(found: _Found, rtol: float, machine: Machine) -> int | None:
    """Return the tile that is estimated fastest; None if the definition's own sums are."""
    lanes = machine.lanes(f32)
    panel = _PANEL_VECTORS * lanes
    outputs = -(-found.outputs // panel) * panel

    def cycles(products: int, pixels: int, transformed: int) -> float:
        multiplied = products * pixels * found.channels * outputs / (2 * lanes * _EFFICIENCY)
        filters = products * found.channels * outputs * 4
        read = filters / _BYTES_A_CYCLE if filters > machine.l2_bytes else 0
        return multiplied + read + transformed * _CYCLES_AN_ELEMENT

    best, least = None, _GAIN * cycles(9, found.batch * found.height * found.width, 0)
    for tile, needed in NEEDED_RTOL.items():
        tiles = found.batch * -(-found.height // tile) * -(-found.width // tile)
        size = (tile + 2) ** 2
        estimated = cycles(size, tiles, size * tiles * (found.channels + outputs))
        if rtol >= needed and estimated < least:
            best, least = tile, estimated
    return best


def _replace(
    node: Node,
    stage: Stage,
    found: _Found,
    constants: dict[Tensor, Constant],
    tile: int,
    panel: int,
) -> Node | None:
    """Return the node with other stages in place of the convolution, if shapes come out equal."""
    filters = found.convolution.filters.tensor
    array = transformed_filters(constants[filters].array, tile, panel)
    array.flags.writeable = False
    shape = tuple([affine(extent) for extent in array.shape])
    transformed = Tensor(f"{filters.name}/winograd{tile}", shape, f32)
    inner = instantiate(
        _definition(found.outputs, tile, panel),
        stage.name,
        {"x": found.convolution.image.tensor, "u": transformed},
        {}, {}, (), node.location,
    )  # fmt: skip
    *before, last = inner.definition.stages
    if last.tensor.shape != stage.tensor.shape:
        return None
    constants[transformed] = Constant(transformed, array)
    stages: list[Stage] = []
    for old in node.definition.stages:
        new = (*before, replace(last, tensors=stage.tensors)) if old is stage else (old,)
        stages.extend(new)
    conditions = node.definition.conditions + inner.definition.conditions
    definition = replace(node.definition, stages=tuple(stages), conditions=conditions)
    arguments = tuple([transformed if t is filters else t for t in node.arguments])
    return replace(node, definition=complete(definition), arguments=arguments)


def _definition(outputs: int, tile: int, panel: int) -> Definition:
    image, filters = np.empty((0,) * 4, np.float32), np.empty((0,) * 5, np.float32)
    return winograd_conv2d.definition(image, filters, outputs=outputs, tile=tile, panel=panel)
