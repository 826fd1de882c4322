import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.dtypes import f32, i32
from tensorlang.interpreter.failures import InterpreterError
from tensorlang.interpreter.run import run_lowered
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Condition, Scalar
from tensorlang.ir.expr import Call, Cast, Const, ScalarRef, index_from_value
from tensorlang.ir.lowered import (
    Allocate,
    BoundsCheck,
    Buffer,
    CheckSite,
    FlatLoad,
    LoweredProgram,
    Store,
)
from tensorlang.ir.program import For, If, Seq

from .programs import call, less, loops, where

EXTENTS = st.sampled_from([0, 1, 2, 3, 5, 8, 11])


def lowered(inputs, outputs, sizes, body, **more):
    scalars = more.pop("scalars", ())
    return LoweredProgram("f", tuple(sizes), scalars, tuple(inputs), tuple(outputs), body, **more)


class Addition:
    """y[i] = x[i] + 1 over flat buffers."""

    def __init__(self):
        self.n = Var("N")
        self.x = Buffer("x", f32, affine(self.n))
        self.y = Buffer("y", f32, affine(self.n))

    def store(self, offset, value=None):
        value = (
            call("add", FlatLoad(self.x, affine(offset)), Const(1, f32)) if value is None else value
        )
        return Store(((self.y, affine(offset)),), (value,))

    def run(self, body, x, **more):
        return run_lowered(
            lowered((self.x,), (self.y,), (self.n,), body), (x,), (), (len(x),), **more
        )


@given(EXTENTS, st.sampled_from([1, 4, 8]))
def test_masked_lanes(n, width):
    op, o, lane = Addition(), Var("o"), Var("l")
    i = affine(o) * width + lane
    body = loops(
        [(o, (affine(op.n) + width - 1) // width, "parallel"), (lane, width, "vectorized")],
        If((affine(op.n) - 1 - i,), op.store(i)),
    )
    x = np.arange(n, dtype=np.float32)
    (result,) = op.run(body, x)
    np.testing.assert_array_equal(result, x + 1)


def test_leaving_a_buffer():
    op, i = Addition(), Var("i")
    with pytest.raises(InterpreterError) as error:
        op.run(loops([(i, op.n)], op.store(affine(i) + 1)), np.zeros(3, np.float32))
    assert str(error.value) == "y[i + 1][i=2] reads x[3], outside [0 <= _ < 3]"


def test_unwritten_output_and_temporary():
    op, i = Addition(), Var("i")
    with pytest.raises(InterpreterError, match=r"the output y\[0\] was never written"):
        op.run(loops([(i, affine(op.n) - 1)], op.store(affine(i) + 1)), np.zeros(3, np.float32))
    t = Buffer("t", f32, affine(4), "local")
    read = op.store(i, Call("neg", (FlatLoad(t, affine(i)),), f32))
    body = loops([(i, op.n)], Allocate(t, read))
    with pytest.raises(InterpreterError, match=r"y\[i\]\[i=0\] reads t\[0\], which was never"):
        op.run(body, np.zeros(3, np.float32))
    moved = loops([(i, op.n)], Allocate(t, op.store(i, FlatLoad(t, affine(i)))))
    with pytest.raises(InterpreterError, match=r"the output y\[0\] was never written"):
        op.run(moved, np.zeros(3, np.float32))
    zeroed = loops([(i, op.n)], Allocate(t, read, zeroed=True))
    assert op.run(zeroed, np.zeros(3, np.float32))[0].tolist() == [0, 0, 0]


def test_an_allocation_in_a_parallel_loop_is_private():
    op, i = Addition(), Var("i")
    t = Buffer("t", f32, affine(1), "local")
    pair = Seq((
        Store(((t, affine(0)),), (FlatLoad(op.x, affine(i)),)),
        op.store(i, FlatLoad(t, affine(0))),
    ))  # fmt: skip
    x = np.arange(5, dtype=np.float32)
    private = loops([(i, op.n, "parallel")], Allocate(t, pair))
    np.testing.assert_array_equal(op.run(private, x)[0], x)
    with pytest.raises(InterpreterError, match="parallel loop i also accessed"):
        op.run(Allocate(t, loops([(i, op.n, "parallel")], pair)), x)
    lanes = loops([(i, op.n, "vectorized")], Allocate(t, pair))
    np.testing.assert_array_equal(op.run(lanes, x)[0], x)


def test_all_values_of_a_store_come_before_its_writes():
    n = Var("N")
    y, z = (Buffer(name, f32, affine(2)) for name in "yz")

    def load(buffer):
        return FlatLoad(buffer, affine(0))

    body = Seq((
        Store(((y, affine(0)), (z, affine(0))), (Const(1, f32), Const(2, f32))),
        Store(((y, affine(0)), (z, affine(0))), (load(z), load(y))),
        Store(((y, affine(1)), (z, affine(1))), (load(y), load(z))),
    ))  # fmt: skip
    first, second = run_lowered(lowered((), (y, z), (n,), body), (), (), (0,))
    assert (first.tolist(), second.tolist()) == ([2, 2], [1, 1])


def test_lanes_read_before_any_writes():
    op, i, lane = Addition(), Var("i"), Var("l")
    shift = Store(((op.y, affine(lane) + 1),), (FlatLoad(op.y, affine(lane)),))
    fill = loops([(i, op.n)], op.store(i))
    x = np.arange(4, dtype=np.float32)
    body = Seq((fill, For(lane, affine(3), "vectorized", shift)))
    assert op.run(body, x, detect_races=False)[0].tolist() == [1, 1, 2, 3]
    with pytest.raises(InterpreterError, match="vectorized loop l also accessed"):
        op.run(body, x)
    serial = Seq((fill, For(lane, affine(3), "serial", shift)))
    assert op.run(serial, x)[0].tolist() == [1, 1, 1, 1]


def test_lazy_loads():
    op, i = Addition(), Var("i")
    before = where(less(0, i), FlatLoad(op.x, affine(i) - 1), Const(9, f32))
    x = np.arange(4, dtype=np.float32)
    assert op.run(loops([(i, op.n)], op.store(i, before)), x)[0].tolist() == [9, 0, 1, 2]


def gather(with_check):
    n, m, i = Var("N"), Var("M"), Var("i")
    table, x = Buffer("table", i32, affine(n)), Buffer("x", f32, affine(m))
    y = Buffer("y", f32, affine(n))
    from tensorlang.dtypes import i64

    index = index_from_value(Cast(FlatLoad(table, affine(i)), i64))
    checks = (BoundsCheck(index, affine(m), 0),) if with_check else ()
    body = loops([(i, n)], Store(((y, affine(i)),), (FlatLoad(x, index, checks),)))
    sites = (CheckSite("X", 0, "model.py:7"),)
    return lowered((table, x), (y,), (n, m), body, check_sites=sites)


def run_gather(with_check, table):
    inputs = (np.array(table, np.int32), np.arange(4, dtype=np.float32))
    return run_lowered(gather(with_check), inputs, (), (len(table), 4))[0].tolist()


def test_bounds_checks_raise_index_errors():
    assert run_gather(True, [3, 0, 1]) == [3, 0, 1]
    with pytest.raises(IndexError) as error:
        run_gather(True, [3, 4])
    assert str(error.value) == (
        "y[i][i=1]: index 4 is out of range for axis 0 of X (model.py:7) of extent 4"
    )
    with pytest.raises(IndexError, match="index -1 is out of range"):
        run_gather(True, [-1])
    with pytest.raises(InterpreterError, match=r"reads x\[4\], outside \[0 <= _ < 4\]"):
        run_gather(False, [4])


def test_scalars_and_strides():
    n, stride, alpha, i = Var("N"), Var("x.stride"), Scalar("alpha", f32), Var("i")
    x = Buffer("x", f32, (affine(n) - 1) * stride + 1)
    y = Buffer("y", f32, affine(n))
    value = call("mul", FlatLoad(x, affine(i) * stride), ScalarRef(alpha))
    op = lowered((x,), (y,), (n, stride), loops([(i, n)], Store(((y, affine(i)),), (value,))),
                 scalars=(alpha,))  # fmt: skip
    whole = np.arange(12, dtype=np.float32)
    result = run_lowered(op, (whole[::3],), (2.0,), (4, 3), [(2, 2)])
    assert result[0].tolist() == [[0, 6], [12, 18]]
    wrong = lowered((x,), (y,), (n, stride), loops([(i, n)], Store(
        ((y, affine(i)),), (FlatLoad(x, affine(i)),))))  # fmt: skip
    with pytest.raises(InterpreterError, match="never written"):  # between the elements
        run_lowered(wrong, (whole[::3],), (), (4, 3))
    with pytest.raises(ValueError, match="strides must be positive"):
        run_lowered(op, (whole[::-3],), (2.0,), (4, 3))


def test_conditions_are_checked():
    op, i = Addition(), Var("i")
    three = Condition(affine(op.n) - 3, "N must be at least 3")
    body = loops([(i, op.n)], op.store(i))
    program = lowered((op.x,), (op.y,), (op.n,), body, conditions=(three,))
    with pytest.raises(ValueError, match="N must be at least 3"):
        run_lowered(program, (np.zeros(2, np.float32),), (), (2,))
