"""Boxes through isl agree with interval arithmetic, and go beyond it."""

from __future__ import annotations

from tensorlang.ir.affine import Var, affine, evaluate
from tensorlang.poly.footprint import Box, footprint
from tests.poly import definitions as ops
from tests.poly.definitions import at, tensor
from tests.poly.scheduling import box_below, loop, naive, split


def test_halo_of_a_strip() -> None:
    program = split(naive(ops.blur()), "i", 8, number=1)
    rows = program.stages[0].tensor
    outer = loop(program, "i.o")
    width = rows.shape[1]
    expected = Box((affine(outer.variable) * 8, affine(0)), (affine(10), width))
    assert footprint(program, rows, outer.variable) == expected
    assert [expected.origin, expected.shape] == [
        tuple(part) for part in zip(*box_below(program, outer, rows), strict=True)
    ]


def test_tile_of_the_result() -> None:
    program = split(naive(ops.matmul()), "i", 6)
    c = program.definition.outputs[0]
    outer = loop(program, "i.o")
    found = footprint(program, c, outer.variable)
    assert found == Box((affine(outer.variable) * 6, affine(0)), (affine(6), c.shape[1]))


def test_division_of_two_loops() -> None:
    n = Var("N")
    x, out = tensor("x", n), tensor("out", affine(n) * 2)
    stage = ops.map_stage(out, lambda i: at(x, i // 2))
    program = split(naive(ops.define("upsample", (n,), (x,), (stage,))), "i", 8)
    outer = loop(program, "i.o").variable
    assert footprint(program, x, outer) == Box((affine(outer) * 4,), (affine(4),))


def test_offset_division() -> None:
    n = Var("N")
    x, out = tensor("x", affine(n) + 1), tensor("out", affine(n) * 2)
    stage = ops.map_stage(out, lambda i: at(x, (i + 1) // 2))
    program = split(naive(ops.define("shifted", (n,), (x,), (stage,))), "i", 3)
    outer = loop(program, "i.o").variable
    found = footprint(program, x, outer)
    assert found is not None
    for value in range(5):
        first, last = (3 * value + 1) // 2, (3 * value + 3) // 2
        assert evaluate(found.origin[0], {outer: value}) == first
        assert evaluate(found.shape[0], {outer: value}) == last - first + 1


def test_gather_has_no_box() -> None:
    program = naive(ops.gather())
    doubled = program.stages[0].tensor
    assert footprint(program, doubled, loop(program, "i", 1).variable) is None


def test_untouched_tensor_has_no_box() -> None:
    program = naive(ops.blur())
    image = program.definition.inputs[0]
    assert footprint(program, image, loop(program, "i", 1).variable) is None
