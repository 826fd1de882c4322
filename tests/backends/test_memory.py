"""Loads, stores, masks and lazy branches in vectorized loops."""

from __future__ import annotations

import numpy as np
import pytest

from tensorlang.dtypes import DType, bool_, f32, f64, i32, i64
from tensorlang.interpreter.run import run_lowered
from tensorlang.ir.affine import Affine, Var, affine, minimum
from tensorlang.ir.expr import Call, Cast, Const, IndexValue, Select, value_atom
from tensorlang.ir.lowered import Allocate, FlatLoad, Store
from tensorlang.ir.program import If
from tests.backends.harness import AVX2, BASELINE, Kernel, run
from tests.backends.programs import (
    buffer,
    call,
    lanes_over,
    load,
    loop,
    program,
    seq,
    store,
)

TARGETS = ["cpu", AVX2, BASELINE]
SIZES = [0, 1, 7, 8, 9, 23]


def counting(size: int, dtype: type = np.float32) -> np.ndarray:
    return (np.arange(size) % 97 + 1).astype(dtype)


@pytest.mark.parametrize("stride", [-3, -2, -1, 0, 1, 2, 3, 5])
@pytest.mark.parametrize("target", TARGETS)
def test_strided_loads_and_stores(stride: int, target: str) -> None:
    size = Var("N")
    span = affine(size) * max(abs(stride), 1)
    x, y, z = buffer("X", f32, span), buffer("Y", f32, size), buffer("Z", f32, span)
    shift = span - 1 if stride < 0 else affine(0)

    def body(i: Affine) -> object:
        return seq(
            store(y, i, load(x, i * stride + shift)), store(z, i * stride + shift, load(y, i))
        )

    kernel = Kernel(program(lanes_over(size, 8, body), (size,), (x,), (y, z)), target)
    for n in SIZES:
        values = counting(n * max(abs(stride), 1))
        outcome = kernel([values], (n,), fill=-1)
        places = np.arange(n) * stride + (values.size - 1 if stride < 0 else 0)
        np.testing.assert_array_equal(outcome.outputs[0], values[places])
        scattered = np.full(values.size, -1, np.float32)
        if n:
            scattered[places] = values[places]
        np.testing.assert_array_equal(outcome.outputs[1], scattered)


@pytest.mark.parametrize("lanes", [2, 5, 8, 16, 64])
def test_every_second_element_of_a_full_vector(lanes: int) -> None:
    x, y = buffer("X", f64, 2 * lanes - 1), buffer("Y", f64, lanes)
    lane = Var("lane")
    body = loop(lane, lanes, store(y, lane, load(x, affine(lane) * 2)), "vectorized")
    values = counting(2 * lanes - 1, np.float64)
    np.testing.assert_array_equal(run(program(body, (), (x,), (y,)), [values])[0], values[::2])


def test_every_second_element_of_a_tail_is_not_gathered() -> None:
    size = Var("N")
    x, y = buffer("X", f32, affine(size) * 2), buffer("Y", f32, size)
    body = lanes_over(size, 8, lambda i: store(y, i, load(x, i * 2 + 1)))
    kernel = Kernel(program(body, (size,), (x,), (y,)), AVX2)
    assert "gather" not in kernel.artefact.assembly
    assert "vmaskmov" in kernel.artefact.assembly


@pytest.mark.parametrize("dtype", [f32, f64, i32, i64, bool_])
def test_store_to_one_address_keeps_the_last_active_lane(dtype: DType) -> None:
    size, lane = Var("N"), Var("lane")
    x, y, z = buffer("X", dtype, 8), buffer("Y", dtype, 1), buffer("Z", dtype, 2)
    masked = If(
        (affine(size) - 1 - lane,), seq(store(y, 0, load(x, lane)), store(z, 1, load(x, 3)))
    )
    body = seq(
        loop(lane, 8, store(z, 0, load(x, lane)), "vectorized"),
        loop(lane, 8, masked, "vectorized"),
    )
    kernel = Kernel(program(body, (size,), (x,), (y, z)))
    values = np.array([1, 0, 1, 1, 0, 1, 0, 1]).astype(
        x.dtype.name.replace("f", "float").replace("i", "int")
    )
    for n in (0, 1, 2, 3, 5, 8):
        outcome = kernel([values], (n,), fill=1)
        assert outcome.outputs[1][0] == values[7]
        assert outcome.outputs[0][0] == (values[n - 1] if n else 1)
        assert outcome.outputs[1][1] == 1


@pytest.mark.parametrize("target", TARGETS)
def test_broadcast_load_needs_an_active_lane(target: str) -> None:
    """Where no lane is active the address of a lane-invariant load lies outside its buffer."""
    size, limit = Var("N"), Var("L")
    x, y = buffer("X", f32, size), buffer("Y", f32, affine(size) * 8)
    outer, lane = Var("o"), Var("i")
    inside = If(
        (affine(limit) - 1 - affine(outer) * 8 - lane,),
        store(y, affine(outer) * 8 + lane, load(x, outer)),
    )
    body = loop(outer, affine(size) + 40000, loop(lane, 8, inside, "vectorized"))
    kernel = Kernel(program(body, (size, limit), (x,), (y,)), target)
    for n, rows in ((3, 24), (3, 17), (1, 1), (0, 0)):
        outcome = kernel([counting(n)], (n, rows), fill=-1)
        want = np.repeat(counting(n), 8)
        want[rows:] = -1
        np.testing.assert_array_equal(outcome.outputs[0], want)


@pytest.mark.parametrize("target", TARGETS)
def test_broadcast_load_in_a_branch_that_no_lane_takes(target: str) -> None:
    size = Var("N")
    x, y = buffer("X", f32, size), buffer("Y", f32, affine(size) * 8)
    outer, lane = Var("o"), Var("i")
    place = affine(outer) * 8 + lane
    before = Call("lt", (IndexValue(place, i64), IndexValue(affine(size), i64)), bool_)
    far = affine(outer) * size  # in the page after the array, but for the first
    value = Select(before, load(x, far), Const(-1.0, f32), f32)
    body = loop(outer, size, loop(lane, 8, store(y, place, value), "vectorized"))
    kernel = Kernel(program(body, (size,), (x,), (y,)), target)
    for n in (0, 1, 5, 8):  # only the first vector has elements before N
        want = np.full(8 * n, -1, np.float32)
        want[:n] = 1
        np.testing.assert_array_equal(kernel([counting(n)], (n,)).outputs[0], want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_lazy_branches_do_not_load(target: str, lanes: int) -> None:
    """A previous element, a padded window, and a lane-invariant guard."""
    size = Var("N")
    x, y = buffer("X", f32, size), buffer("Y", f32, affine(size) * 3)
    zero = Const(0.0, f32)

    def at_least(form: Affine, bound: int) -> Call:
        return Call("ge", (IndexValue(form, i64), Const(bound, i64)), bool_)

    def body(i: Affine) -> object:
        before = Select(at_least(i, 1), load(x, i - 1), zero, f32)
        both = Call("and", (at_least(i, 4), at_least(affine(size) - i - 5, 0)), bool_)
        window = Select(both, call("add", load(x, i - 4), load(x, i + 4)), zero, f32)
        uniform = Select(at_least(affine(size), 20), load(x, 19), load(x, i), f32)
        return seq(
            store(y, i * 3, before), store(y, i * 3 + 1, window), store(y, i * 3 + 2, uniform)
        )

    made = program(lanes_over(size, lanes, body), (size,), (x,), (y,))
    kernel = Kernel(made, target)
    for n in (0, 1, 4, 8, 9, 10, 19, 20, 33):
        values = counting(n)
        outcome = kernel([values], (n,))
        np.testing.assert_array_equal(outcome.outputs[0], run_lowered(made, [values], [], (n,))[0])


@pytest.mark.parametrize("lanes", [1, 8])
def test_a_branch_may_use_what_its_condition_loaded(lanes: int) -> None:
    """``where(x > 0, x, 0)`` is a plain selection, whether or not the nodes are shared."""
    x, y = buffer("X", f32, 24), buffer("Y", f32, 24)

    def body(i: Affine) -> object:
        positive = Call("gt", (load(x, i), Const(0.0, f32)), bool_)
        inner = Select(positive, load(x, i), call("neg", load(x, i)), f32)
        return store(y, i, Select(positive, inner, Const(0.0, f32), f32))

    made = program(lanes_over(affine(24), lanes, body, mask=False), (), (x,), (y,))
    kernel = Kernel(made, AVX2)
    assert kernel.artefact.llvm.count("load <8 x float>") == (1 if lanes == 8 else 0)
    assert "phi float" not in kernel.artefact.llvm
    assert "masked" not in kernel.artefact.llvm
    values = counting(24) - 10
    np.testing.assert_array_equal(kernel([values]).outputs[0], np.maximum(values, 0))


def test_nested_masks_and_otherwise() -> None:
    size = Var("N")
    x, y = buffer("X", f32, size), buffer("Y", f32, size)

    def body(i: Affine) -> object:
        third = If((i % 3 - 1,), store(y, i, Const(1.0, f32)), store(y, i, load(x, i)))
        return If((i - 2,), third, store(y, i, Const(9.0, f32)))

    made = program(lanes_over(size, 8, body), (size,), (x,), (y,))
    kernel = Kernel(made)
    for n in SIZES:
        want = run_lowered(made, [counting(n)], [], (n,))[0]
        np.testing.assert_array_equal(kernel([counting(n)], (n,)).outputs[0], want)


def test_conditions_with_other_strides_and_bounds() -> None:
    size = Var("N")
    y = buffer("Y", i64, size)
    zero, one = Const(0, i64), Const(1, i64)

    def body(i: Affine) -> object:
        conditions = [
            (i * 3 - 10,), (affine(size) * 2 - i * 5,), (minimum(i, affine(size) - i) - 2,),
            (i * i - 30,), (affine(size) * (2**40) - i,), (i - 2**45,), (3 - 2**40 - i,),
            (i + 2**40 - 3,),
        ]  # fmt: skip
        value = zero
        for number, condition in enumerate(conditions):
            (form,) = condition
            test = Call("ge", (IndexValue(form, i64), zero), bool_)
            bit = Select(test, Const(2**number, i64), zero, i64)
            value = call("add", value, bit)
        return seq(store(y, i, value), If((i * 2 - 9,), store(y, i, call("sub", value, one))))

    made = program(lanes_over(size, 8, body), (size,), (), (y,))
    kernel = Kernel(made)
    for n in SIZES:
        want = run_lowered(made, [], [], (n,))[0]
        np.testing.assert_array_equal(kernel([], (n,)).outputs[0], want)


@pytest.mark.parametrize("target", TARGETS)
def test_local_buffers_blend_under_masks(target: str) -> None:
    """Two masked stores of one local vector leave each lane with its own value."""
    size = Var("N")
    x, y = buffer("X", f32, affine(size)), buffer("Y", f32, affine(size) * 8)
    tile = buffer("T", f32, 16, scope="local", alignment=64)
    row, lane = Var("row"), Var("lane")
    vectors = [
        loop(lane, 8, store(tile, affine(lane) + 8, Const(5.0, f32)), "vectorized"),
        loop(lane, 8, store(tile, lane, load(tile, affine(lane) + 8)), "vectorized"),
        loop(lane, 8, If((affine(row) - lane,), store(tile, lane, load(x, row))), "vectorized"),
        loop(
            lane,
            8,
            If((affine(lane) - 6,), store(tile, lane, call("neg", load(tile, lane)))),
            "vectorized",
        ),
        loop(lane, 8, store(y, affine(row) * 8 + lane, load(tile, lane)), "vectorized"),
    ]
    made = program(loop(row, size, Allocate(tile, seq(*vectors))), (size,), (x,), (y,))
    kernel = Kernel(made, target)
    assert "masked" not in kernel.artefact.llvm
    for n in (0, 1, 3, 9):
        want = run_lowered(made, [counting(n)], [], (n,))[0]
        np.testing.assert_array_equal(kernel([counting(n)], (n,)).outputs[0], want)


def test_local_buffer_read_across_lanes() -> None:
    """Transposing through registers: strided accesses of a local buffer."""
    x, y = buffer("X", f32, 32), buffer("Y", f32, 32)
    tile = buffer("T", f32, 32, scope="local", alignment=64)
    stmts = []
    for r in range(4):
        lane = Var("lane")
        stmts.append(
            loop(
                lane,
                8,
                store(tile, affine(lane) * 4 + r, load(x, affine(lane) + 8 * r)),
                "vectorized",
            )
        )
    for r in range(8):
        lane = Var("lane")
        stmts.append(
            loop(
                lane,
                4,
                store(y, affine(lane) + 4 * r, load(tile, affine(lane) + 4 * r)),
                "vectorized",
            )
        )
    values = counting(32)
    got = run(program(Allocate(tile, seq(*stmts)), (), (x,), (y,)), [values])[0]
    np.testing.assert_array_equal(got.reshape(8, 4), values.reshape(4, 8).T)


def test_tuple_valued_store_reads_before_it_writes() -> None:
    size = Var("N")
    a, b = buffer("A", f32, size), buffer("B", f32, size)
    x = buffer("X", f32, size)

    def body(i: Affine) -> object:
        swap = Store(((a, i), (b, i)), (load(b, i), call("add", load(a, i), load(b, i))))
        return seq(store(a, i, load(x, i)), store(b, i, Const(1.0, f32)), swap, swap)

    outputs = run(program(lanes_over(size, 8, body), (size,), (x,), (a, b)), [counting(11)], (11,))
    np.testing.assert_array_equal(outputs[0], counting(11) + 1)
    np.testing.assert_array_equal(outputs[1], counting(11) + 2)


def test_data_dependent_addresses_see_earlier_stores() -> None:
    """The same index expression, before and after the store that changes it."""
    x, y = buffer("X", i64, 8), buffer("Y", i64, 8)
    table = buffer("T", i64, 1)
    position = affine(value_atom(FlatLoad(table, affine(0))))
    stmts = seq(
        store(table, 0, Const(2, i64)),
        store(y, position, load(x, position)),
        store(table, 0, Const(5, i64)),
        store(y, position, load(x, position)),
    )
    outputs = run(program(stmts, (), (x,), (y, table)), [counting(8, np.int64)])
    np.testing.assert_array_equal(outputs[0], [0, 0, 3, 0, 0, 6, 0, 0])


def test_condition_on_data_that_its_branch_changes() -> None:
    table, y = buffer("T", i64, 1), buffer("Y", i64, 2)
    current = FlatLoad(table, affine(0))
    position = affine(value_atom(current))
    branch = seq(store(table, 0, Const(7, i64)), store(y, 1, current))
    stmts = seq(store(table, 0, Const(3, i64)), store(y, 0, current), If((position - 3,), branch))
    outputs = run(program(stmts, (), (), (y, table)), [])
    np.testing.assert_array_equal(outputs[0], [3, 7])


@pytest.mark.parametrize("target", TARGETS)
def test_gather_and_scatter(target: str) -> None:
    size = Var("N")
    x, table, y = buffer("X", f64, size), buffer("T", i32, size), buffer("Y", f64, size)

    def body(i: Affine) -> object:
        position = affine(value_atom(Cast(load(table, i), i64)))
        return store(y, position, load(x, affine(size) - 1 - position))

    made = program(lanes_over(size, 8, body), (size,), (x, table), (y,))
    kernel = Kernel(made, target)
    for n in SIZES:
        permutation = np.random.default_rng(n).permutation(n).astype(np.int32)
        values = counting(n, np.float64)
        outcome = kernel([values, permutation], (n,), fill=-1)
        np.testing.assert_array_equal(outcome.outputs[0], values[::-1])


def test_serial_loop_inside_a_vectorized_one() -> None:
    """Each lane sums a row of its own; rows lie a symbolic distance apart."""
    rows, columns = Var("M"), Var("K")
    x, y = buffer("X", f32, affine(rows) * columns), buffer("Y", f32, rows)

    def body(i: Affine) -> object:
        k = Var("k")
        total = call("add", load(y, i), load(x, i * columns + k))
        return seq(store(y, i, Const(0.0, f32)), loop(k, columns, store(y, i, total)))

    kernel = Kernel(program(lanes_over(rows, 8, body), (rows, columns), (x,), (y,)))
    for m, n in ((0, 3), (5, 0), (1, 1), (8, 3), (13, 5)):
        values = counting(m * n).reshape(m, n)
        got = kernel([values], (m, n)).outputs[0]
        np.testing.assert_array_equal(got, values.sum(1))


def test_uniform_values_are_computed_once() -> None:
    """What does not depend on the lane stays scalar."""
    size = Var("N")
    x, s, y = buffer("X", f32, size), buffer("S", f32, 1), buffer("Y", f32, size)
    body = lanes_over(
        size, 8, lambda i: store(y, i, call("mul", load(x, i), call("sqrt", load(s, 0))))
    )
    text = Kernel(program(body, (size,), (x, s), (y,))).artefact.llvm
    assert "@llvm.sqrt.f32" in text
    assert "@llvm.sqrt.v8f32" not in text
