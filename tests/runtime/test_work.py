import pytest
from hand_built import matmul, scale

from tensorlang.dtypes import bool_, f32, f64
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Axis, Definition, Stage, Tensor
from tensorlang.ir.expr import Call, Load
from tensorlang.runtime.work import WorkCounter


def sizes(definition, *values):
    return dict(zip(definition.sizes, values, strict=True))


def test_matmul_counts_two_operations_a_point():
    definition = matmul(f32)
    work = WorkCounter(definition).count(sizes(definition, 64, 32, 16))
    assert work.operations == 2 * 64 * 32 * 16
    assert work.bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16)
    assert WorkCounter(definition).count(sizes(definition, 0, 32, 16)).operations == 0


def test_the_estimate_follows_measured_crossovers():
    """Two threads paid for a 64^3 matmul and not for a 16^3 one; bytes alone count too."""
    definition = matmul(f32)
    counter = WorkCounter(definition)
    assert counter.count(sizes(definition, 64, 64, 64)).serial_seconds > 3e-6
    assert counter.count(sizes(definition, 16, 16, 16)).serial_seconds < 3e-6
    definition = scale(f64)
    counter = WorkCounter(definition)
    assert counter.count(sizes(definition, 100_000)).serial_seconds > 3e-6
    assert counter.count(sizes(definition, 100)).serial_seconds < 3e-6


@pytest.mark.parametrize(("function", "arity", "expected"), [("fma", 3, 2), ("exp", 1, 1)])
def test_operations_by_function(function, arity, expected):
    n, i = Var("N"), Var("i")
    x, y = (Tensor(name, (affine(n),), f32) for name in "XY")
    load = Load(x, (affine(i),))
    value = Call("isnan", (Call(function, (load,) * arity, f32),), bool_)
    stage = Stage((y,), (Axis(i, affine(n)),), (value,))
    definition = Definition("f", (n,), (x,), (), (stage,), (y,))
    assert WorkCounter(definition).count({n: 3}).operations == 3 * expected
