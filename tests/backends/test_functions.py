"""Every exact function on every dtype that it accepts, against the interpreter's arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tensorlang import dtypes
from tensorlang.backends.llvm.arithmetic import known_functions
from tensorlang.dtypes import DType, bool_, evaluation_dtype, f64, i32, integer_range, to_numpy
from tensorlang.interpreter import arithmetic
from tensorlang.ir.affine import Var
from tensorlang.ir.expr import Bitcast, Call, Cast
from tensorlang.ir.functions import FUNCTIONS
from tests.backends.harness import AVX2, BASELINE, Kernel
from tests.backends.programs import buffer, lanes_over, load, program, seq, store
from tests.backends.strategies import ELEMENTARY, _accepts


def special_values(dtype: DType) -> np.ndarray:
    kind = to_numpy(dtype)
    if dtype is bool_:
        return np.array([False, True])
    if dtype.kind == "float":
        values = [0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 3.0, 7.0, 1e9, 1e-5, np.inf, 8388609.0, 4e-39]
        with np.errstate(over="ignore"):
            return np.array([*values, *[-value for value in values], np.nan]).astype(kind)
    low, high = integer_range(dtype)
    values = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 31, 33, 64, -1, -2, -7, -33}
    return np.array(sorted(v for v in values if low <= v <= high), kind)


def operands(dtype: DType, count: int) -> list[np.ndarray]:
    values = special_values(dtype)
    return [np.ravel(grid) for grid in np.meshgrid(*[values] * count)]


def assert_same(got: np.ndarray, want: np.ndarray, message: str) -> None:
    """Compare exactly; f16 and bf16 as f32, for NumPy does not know the NaN of bf16."""
    np.testing.assert_array_equal(arithmetic.widen(got), arithmetic.widen(want), err_msg=message)


def functions_of(dtype: DType) -> list[str]:
    exact = [name for name in FUNCTIONS if name not in ELEMENTARY and _accepts(name, dtype)]
    if dtype.kind in ("int", "uint"):
        exact.append("pow")
    return exact


def test_every_function_is_known() -> None:
    assert set(FUNCTIONS) == known_functions()


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("target", [BASELINE, "cpu"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_all_functions(dtype: DType, target: str, lanes: int) -> None:
    if dtype is dtypes.bf16:
        pytest.importorskip("ml_dtypes")
    size = Var("N")
    sources = [buffer(f"X{k}", dtype, size) for k in range(3)]
    names = functions_of(dtype)
    results = [
        buffer(name, bool_ if FUNCTIONS[name].result == "bool" else dtype, size) for name in names
    ]

    def body(index: object) -> object:
        return seq(
            *[
                store(
                    result,
                    index,
                    Call(
                        name,
                        tuple([load(x, index) for x in sources[: FUNCTIONS[name].arity]]),
                        result.dtype,
                    ),
                )
                for name, result in zip(names, results, strict=True)
            ]
        )

    arguments = operands(dtype, 2)
    arguments.append(np.roll(arguments[0], 5))
    kernel = Kernel(program(lanes_over(size, lanes, body), (size,), sources, results), target)
    outcome = kernel(arguments, (arguments[0].size,))
    assert outcome.code == 0
    for name, result, got in zip(names, results, outcome.outputs, strict=True):
        used = arguments[: FUNCTIONS[name].arity]
        want = arithmetic.apply(name, used, result.dtype)
        stored = arithmetic.round_to_storage(want, result.dtype)
        assert_same(got, stored, f"{name} of {dtype.name}")


@pytest.mark.parametrize("source", dtypes.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("target", [BASELINE, AVX2, "cpu"])
def test_conversions(source: DType, target: str) -> None:
    if dtypes.bf16 is source:
        pytest.importorskip("ml_dtypes")
    size = Var("N")
    x = buffer("X", source, size)
    others = [dtype for dtype in dtypes.ALL if dtype is not dtypes.bf16 or _has_bfloat()]
    results = [buffer(f"Y_{dtype.name}", dtype, size) for dtype in others]

    def body(index: object) -> object:
        return seq(*[store(y, index, Cast(load(x, index), y.dtype)) for y in results])

    values = special_values(source)
    if source.kind == "float":
        more = np.array([2.0**31, 2.0**63, 2.0**64, -(2.0**31), 65504.0, 65520.0, 6e-8, 2.9e-8])
        with np.errstate(over="ignore"):
            more = more.astype(values.dtype)
        values = np.concatenate([values, more, -more])
    kernel = Kernel(program(lanes_over(size, 8, body), (size,), (x,), results), target)
    outcome = kernel([values], (values.size,))
    for dtype, got in zip(others, outcome.outputs, strict=True):
        want = arithmetic.round_to_storage(arithmetic.cast(values, source, dtype), dtype)
        assert_same(got, want, f"{source.name} to {dtype.name}")


def _has_bfloat() -> bool:
    try:
        to_numpy(dtypes.bf16)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("source", "target"), [(dtypes.f32, i32), (i32, dtypes.f32), (f64, dtypes.i64)]
)
def test_bitcast(source: DType, target: DType) -> None:
    size = Var("N")
    x, y = buffer("X", source, size), buffer("Y", target, size)
    values = special_values(source)
    body = lanes_over(size, 4, lambda i: store(y, i, Bitcast(load(x, i), target)))
    outcome = Kernel(program(body, (size,), (x,), (y,)))([values], (values.size,))
    np.testing.assert_array_equal(
        outcome.outputs[0], values.view(to_numpy(target)), err_msg=evaluation_dtype(target).name
    )
