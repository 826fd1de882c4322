"""Elementary functions: error bounds in units of the last place, and special values.

References are computed in a wider type: f64 for f32, the 80-bit type of x86 for f64.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import platform
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.backends.llvm.maths import FUNCTIONS, huge_angles
from tensorlang.dtypes import DType, f32, f64, to_numpy
from tensorlang.ir.affine import Var
from tests.accuracy.functions import BOUNDS, REFERENCES
from tests.backends.harness import AVX2, BASELINE, Kernel
from tests.backends.programs import buffer, call, lanes_over, load, program, store
from tests.backends.strategies import ELEMENTARY

HAS_EXTENDED = np.finfo(np.longdouble).nmant > 60


@cache
def kernel(name: str, dtype: DType, lanes: int, target: str = "cpu") -> Kernel:
    size = Var("N")
    sources = [buffer(f"X{k}", dtype, size) for k in range(2 if name in ("pow", "atan2") else 1)]
    result = buffer("Y", dtype, size)
    body = lanes_over(
        size, lanes, lambda i: store(result, i, call(name, *[load(x, i) for x in sources]))
    )
    return Kernel(program(body, (size,), sources, (result,)), target)


def evaluate(
    name: str, dtype: DType, lanes: int, target: str, *arguments: np.ndarray
) -> np.ndarray:
    outcome = kernel(name, dtype, lanes, target)(arguments, (arguments[0].size,))
    assert outcome.code == 0
    return outcome.outputs[0]


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return errors in units of the last place, of subnormal numbers in the least number."""
    information = np.finfo(got.dtype)
    rounded = exact.astype(got.dtype)
    unit = np.maximum(np.spacing(np.abs(rounded)), information.smallest_subnormal)
    result = np.abs(got.astype(exact.dtype) - exact) / unit.astype(exact.dtype)
    same = (got == rounded) & ~np.isfinite(rounded) | (np.isnan(got) & np.isnan(exact))
    result = np.where(same, 0, result).astype(np.float64)
    return np.nan_to_num(result, nan=np.inf)


def all_singles(step: int) -> np.ndarray:
    """Every ``step``-th bit pattern of f32: all exponents, both signs, NaN and inf too."""
    return np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)


def doubles(count: int = 20_000) -> np.ndarray:
    generator = np.random.default_rng(3)
    return np.concatenate(
        [
            generator.integers(0, 2**64, count, dtype=np.uint64).view(np.float64),
            *[generator.uniform(-width, width, count) for width in (1, 10, 40, 750)],
            np.exp(generator.uniform(-40, 3, count)),
            1 + generator.normal(0, 1e-3, count),
            np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 2.3e-308, 709.782, 709.783]),
        ]
    )


ONE_OPERAND = sorted(name for name in REFERENCES if name not in ("atan2", "pow"))


@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid"])
@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("lanes", [1, 4, 16, 64])
def test_the_number_of_lanes_changes_no_bit(name: str, dtype: DType, lanes: int) -> None:
    """Registers that an instruction scales, parts of them, and several at once."""
    x = all_singles(40_009) if dtype is f32 else doubles(5_000)
    with np.errstate(all="ignore"):
        found, wanted = (evaluate(name, dtype, n, "cpu", x) for n in (lanes, 2))
    np.testing.assert_array_equal(found, wanted)


def test_every_elementary_function_has_a_bound() -> None:
    assert set(BOUNDS) == ELEMENTARY | {"sqrt"}
    assert set(FUNCTIONS) | {"rsqrt"} >= ELEMENTARY


@pytest.mark.parametrize("name", ONE_OPERAND)
@pytest.mark.parametrize(("lanes", "target", "step"), [(16, "cpu", 20_011), (4, BASELINE, 80_021)])
def test_single_precision(name: str, lanes: int, target: str, step: int) -> None:
    x = all_singles(step)
    with np.errstate(all="ignore"):
        found = errors(
            evaluate(name, f32, lanes, target, x), REFERENCES[name](x.astype(np.float64))
        )
    worst = found.argmax()
    assert found[worst] <= BOUNDS[name], f"{found[worst]} units at {x[worst]!r}"


@pytest.mark.skipif(not HAS_EXTENDED, reason="no wider type to compare with")
@pytest.mark.parametrize("name", ONE_OPERAND)
@pytest.mark.parametrize(("lanes", "target"), [(8, "cpu"), (2, BASELINE)])
def test_double_precision(name: str, lanes: int, target: str) -> None:
    x = doubles()
    with np.errstate(all="ignore"):
        found = errors(
            evaluate(name, f64, lanes, target, x), REFERENCES[name](x.astype(np.longdouble))
        )
    worst = found.argmax()
    assert found[worst] <= BOUNDS[name], f"{found[worst]} units at {x[worst]!r}"


@pytest.mark.parametrize("name", ["atan2", "pow"])
@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("target", ["cpu", BASELINE])
def test_two_operands(name: str, dtype: DType, target: str) -> None:
    wide = np.float64 if dtype is f32 else np.longdouble
    if dtype is f64 and not HAS_EXTENDED:
        pytest.skip("no wider type to compare with")
    generator, count, kind = np.random.default_rng(4), 20_000, to_numpy(dtype)
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e30, 1e-30, 2.0**53 + 2, 9007199254740993.0, np.inf]
    special = np.array([*values, *[-value for value in values], np.nan])
    first, second = (grid.ravel() for grid in np.meshgrid(special, special))
    lowest = -1075 if dtype is f64 else -150
    subnormal = np.exp(generator.uniform(-40, 40, count))  # to a power that makes it so
    depth = generator.uniform(lowest - 2, lowest + 60, count)
    x = np.concatenate(
        [first, np.exp(generator.uniform(-80, 80, count)), generator.uniform(-3, 3, count),
         1 + generator.normal(0, 1e-3, count), subnormal]
    ).astype(kind)  # fmt: skip
    y = np.concatenate(
        [second, generator.uniform(-8, 8, count), generator.integers(-20, 20, count),
         generator.uniform(-1e5, 1e5, count), depth / np.log2(subnormal)]
    ).astype(kind)  # fmt: skip
    got = evaluate(name, dtype, 8, target, x, y)
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(wide), y.astype(wide))
        found = errors(got, exact)
    worst = found.argmax()
    assert found[worst] <= BOUNDS[name], f"{found[worst]} units at {x[worst]!r}, {y[worst]!r}"
    zeros = (got == 0) & (exact == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))


def test_the_words_of_two_over_pi() -> None:
    """Computed anew, by Machin's formula in whole numbers."""

    def arctan_of_inverse(n: int, one: int) -> int:
        total = term = one // n
        sign, k = -1, 3
        while term:
            term //= n * n
            total += sign * (term // k)
            sign, k = -sign, k + 2
        return total

    count = 32 * len(huge_angles.TWO_OVER_PI)
    one = 1 << (count + 64)
    pi = 4 * (4 * arctan_of_inverse(5, one) - arctan_of_inverse(239, one))
    found = 2 * one * one // pi >> 64
    words = [(found >> (count - 32 * (k + 1))) & 0xFFFFFFFF for k in range(count // 32)]
    assert tuple(words) == huge_angles.TWO_OVER_PI


@pytest.mark.parametrize("target", ["cpu", BASELINE])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize(("dtype", "largest"), [(f32, 127), (f64, 1023)])
def test_huge_angles(name: str, target: str, dtype: DType, largest: int) -> None:
    """All exponents, and the f64 and f32 that come closest to a multiple of pi/2."""
    if dtype is f64 and not HAS_EXTENDED:
        pytest.skip("no wider type to compare with")
    kind, wide = to_numpy(dtype), np.float64 if dtype is f32 else np.longdouble
    generator = np.random.default_rng(5)
    exponents = np.repeat(np.arange(14, largest + 1), 100)
    x = generator.uniform(1, 2, exponents.size) * 2.0**exponents
    x = x * generator.choice([-1, 1], x.size)
    hard = [16367173.0 * 2.0**72] if dtype is f32 else [6381956970095103 * 2.0**797]
    x = np.concatenate([x, hard, [np.inf, -np.inf, np.nan, 1.0, 2.0**17, 2.0**20]]).astype(kind)
    with np.errstate(all="ignore"):
        found = errors(evaluate(name, dtype, 8, target, x), REFERENCES[name](x.astype(wide)))
    worst = found.argmax()
    assert found[worst] <= BOUNDS[name], f"{found[worst]} units at {x[worst]!r}"


def fused(a: float, b: float, c: float, kind: type) -> float:
    """Return a b + c rounded once, by fractions."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if not exact:
        return kind(float(a) * float(b) + float(c))  # the sign of zero
    digits = np.finfo(kind).nmant + 1
    exponent = math.frexp(float(exact))[1] if abs(exact) > 2**-1000 else -1000
    exponent = max(exponent, int(np.finfo(kind).minexp) + 1) - digits
    scaled = exact / Fraction(2) ** exponent
    if abs(scaled) < 2 ** (digits - 1) and exponent > np.finfo(kind).minexp + 1 - digits:
        exponent, scaled = exponent - 1, scaled * 2
    return kind(math.ldexp(round(scaled), exponent))  # round: ties to even


@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("target", ["cpu", BASELINE])
def test_fma_rounds_once(dtype: DType, target: str) -> None:
    """Sums that nearly cancel and halfway cases, where a second rounding would show."""
    kind = to_numpy(dtype).type
    generator, count = np.random.default_rng(6), 2000
    few = np.round(generator.uniform(1, 2, (2, count)) * 2**12) / 2**12
    many = generator.uniform(1, 2, (2, count))
    a, b = np.concatenate([few, many], axis=1).astype(kind)
    product = a.astype(kind) * b
    tiny = generator.choice([-1, 1], 2 * count) * 2.0 ** generator.integers(-80, -20, 2 * count)
    c = np.concatenate([-product, tiny.astype(kind), generator.normal(size=2 * count)]).astype(kind)
    a, b = np.tile(a, 3), np.tile(b, 3)
    size = Var("N")
    sources = [buffer(name, dtype, size) for name in ("A", "B", "C")]
    result = buffer("Y", dtype, size)
    body = lanes_over(
        size, 8, lambda i: store(result, i, call("fma", *[load(x, i) for x in sources]))
    )
    outcome = Kernel(program(body, (size,), sources, (result,)), target)((a, b, c), (a.size,))
    want = np.array([fused(*operands, kind) for operands in zip(a, b, c, strict=True)], kind)
    np.testing.assert_array_equal(outcome.outputs[0], want)


ODD = ("expm1", "log1p", "tanh", "sinh", "erf", "sin", "tan", "asin", "atan")


@pytest.mark.parametrize("dtype", [f32, f64])
def test_special_values(dtype: DType) -> None:
    kind = to_numpy(dtype)
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-44, -1e-44], kind)
    for name in ONE_OPERAND:
        got = evaluate(name, dtype, 8, "cpu", x)
        with np.errstate(all="ignore"):
            want = REFERENCES[name](x)
            information = np.finfo(kind)
            slack = 2 * information.eps * np.abs(want) + information.smallest_subnormal
            near = np.abs(got - want) <= slack
        agrees = (got == want) | (np.isnan(got) & np.isnan(want)) | near
        assert agrees.all(), f"{name}: {got} instead of {want}"
    for name in ODD:
        got = evaluate(name, dtype, 8, "cpu", x)
        assert not np.signbit(got[0])
        assert np.signbit(got[1]), f"{name}(-0.0) lost its sign"
        if name != "erf":  # whose slope is not 1
            np.testing.assert_array_equal(got[5:7], x[5:7], err_msg=f"{name} of the least numbers")


def neighbours(value: float, kind: np.dtype, count: int = 40) -> np.ndarray:
    """Return the numbers around ``value``, one after the other."""
    integer = np.int32 if kind.itemsize == 4 else np.int64
    centre = np.array(value, kind).view(integer)
    return (centre + np.arange(-count, count + 1, dtype=integer)).astype(integer).view(kind)


@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("target", ["cpu", BASELINE])
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid"])
def test_where_results_overflow_and_underflow(name: str, dtype: DType, target: str) -> None:
    """Every number around the limits, where one comparison decides."""
    if dtype is f64 and not HAS_EXTENDED:
        pytest.skip("no wider type to compare with")
    kind, wide = to_numpy(dtype), np.float64 if dtype is f32 else np.longdouble
    low, high = np.finfo(kind).minexp, np.finfo(kind).maxexp
    least = low - np.finfo(kind).nmant
    exponents = (least - 1, least, least + 1, low - 2, low, low + 1, high, high + 1)
    places = [e * (1 if name == "exp2" else math.log(2)) for e in exponents]
    places += [-place for place in places] + [1e-300 if dtype is f64 else 1e-37, 0.5, 1.0, 9.01]
    x = np.concatenate([neighbours(place, kind) for place in places])
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(wide))
        got = evaluate(name, dtype, 8, target, x)
        found = errors(got, exact)
    worst = found.argmax()
    assert found[worst] <= BOUNDS[name], f"{found[worst]} units at {x[worst]!r}: {got[worst]!r}"


def test_powers_of_two_are_exact() -> None:
    exponents = np.arange(-126, 128, dtype=np.float32)
    powers = evaluate("exp2", f32, 16, "cpu", exponents)
    np.testing.assert_array_equal(powers, np.exp2(exponents.astype(np.float64)))
    np.testing.assert_array_equal(evaluate("log2", f32, 16, "cpu", powers), exponents)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_library_calls_in_vector_code(name: str) -> None:
    """What is called is our own: sin, cos and tan of huge numbers are reduced in a function."""
    size = Var("N")
    arity = {"pow": 2, "atan2": 2, "fma": 3}.get(name, 1)
    sources = [buffer(f"X{k}", f32, size) for k in range(arity)]
    result = buffer("Y", f32, size)
    body = lanes_over(
        size, 8, lambda i: store(result, i, call(name, *[load(x, i) for x in sources]))
    )
    for target in (AVX2, BASELINE):
        assembly = Kernel(program(body, (size,), sources, (result,)), target).artefact.assembly
        called = {
            line.split()[-1].removesuffix("@PLT")
            for line in assembly.splitlines()
            if "\tcall" in line or ("\tjmp\t" in line and "@PLT" in line)
        }
        assert {c for c in called if "tensorlang" not in c} == set()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="flags of x86")
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_what_a_mask_drops_does_not_underflow(name):
    """A product that underflows takes the processor ten times as long, in each vector."""
    N = tl.dim("N")
    function = getattr(tl, name)

    @tl.compute
    def apply(x: tl.f32[N]):
        return tl.tensor(function(x[i]) for i in N)

    flags = ctypes.CDLL(ctypes.util.find_library("m"))
    underflow = 0x10

    def underflows(value):
        x = np.full(64, value, np.float32)
        out = apply(x)
        flags.feclearexcept(underflow)
        apply(x, out=out)
        return bool(flags.fetestexcept(underflow))

    assert not underflows(-np.inf)
    assert not underflows(-1e30)
    assert underflows(-100.0 if name == "exp" else -140.3)  # a subnormal number is one


@pytest.mark.parametrize(("target", "expected"), [("znver4", True), ("haswell", False)])
def test_powers_of_two_scale_by_one_instruction_where_there_is_one(
    target: str, expected: bool
) -> None:
    N = tl.dim("N")

    @tl.compute
    def powers(x: tl.f32[N]):
        return tl.tensor(tl.exp(x[i]) for i in N)

    compiled = tl.compile(powers, target=f"cpu -mcpu={target}")
    assert ("avx512.mask.scalef" in compiled.source("llvm")) is expected
