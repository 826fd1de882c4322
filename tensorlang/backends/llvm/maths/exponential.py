"""exp, exp2, expm1 and sigmoid.

    e^x = 2^n e^r,   n = round(x log2 e),   r = x - n ln 2,   |r| <= 0.347

``n`` is rounded by adding 1.5 * 2^23 (f32; 2^52 in f64), which leaves it in the low bits of the
sum; shifted up, these bits are added to the exponent of e^r. ``n ln 2`` is subtracted in two parts,
the first of which has so few bits that its product with ``n`` is exact.

Where e^r 2^n is subnormal, 2^n is taken 2^64 times too large and the product scaled down, which
rounds it. Overflow gives inf. AVX-512 has an instruction for all of that (``scaling``).

Errors in units of the last place, tested in f32 and f64: exp 1.1, exp2 1.6, expm1 2.2, sigmoid 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.polynomial import Coefficients, polynomial
from tensorlang.backends.llvm.maths.scaling import has_scaling, scale_where
from tensorlang.backends.llvm.types import Value, constant, vector

_RAISED = 64  # the exponent that subnormal results are computed above their own


@dataclass(frozen=True, slots=True)
class Format:
    """Constants of one floating-point format.

    ``exp`` and ``expm1`` are q of ``e^r = 1 + r + r^2 q(r)``, each best in its own relative error;
    ``exp2`` is q of ``2^r = 1 + r q(r)``. From ``lowest`` to ``greatest`` e^x is normal.
    """

    magic: float
    mantissa_bits: int
    bias: int
    ln2_high: float
    ln2_low: float
    lowest: float
    greatest: float
    exp: Coefficients
    expm1: Coefficients
    exp2: Coefficients

    @property
    def largest_exponent(self) -> int:
        """The least power of two that overflows."""
        return self.bias + 1

    @property
    def least_exponent(self) -> int:
        """The power of two of the least normal number."""
        return 1 - self.bias

    @property
    def vanishing_exponent(self) -> int:
        """The power of two that is half of the least number: it and all below round to 0."""
        return self.least_exponent - self.mantissa_bits - 1


SINGLE = Format(
    magic=1.5 * 2.0**23,
    mantissa_bits=23,
    bias=127,
    ln2_high=0.693359375,
    ln2_low=-2.12194440054690581e-4,
    lowest=float.fromhex("-0x1.5d589ep+6"),
    greatest=float.fromhex("0x1.62e42ep+6"),
    exp=(
        0.4999999403953552, 0.16666516661643982, 0.04166810214519501, 0.008369196206331253,
        0.0013838992454111576,
    ),
    expm1=(
        0.5, 0.1666666567325592, 0.04166635870933533, 0.008333389647305012,
        0.0013940668432042003, 0.00019845683709718287,
    ),
    exp2=(
        0.6931471824645996, 0.24022650718688965, 0.055504050105810165, 0.00961808767169714,
        0.0013337999116629362, 0.00015451712533831596, 1.4308308891486377e-05,
    ),
)  # fmt: skip
DOUBLE = Format(
    magic=1.5 * 2.0**52,
    mantissa_bits=52,
    bias=1023,
    ln2_high=float.fromhex("0x1.62e42fefa0000p-1"),
    ln2_low=float.fromhex("0x1.cf79abc9e3b3ap-40"),
    lowest=float.fromhex("-0x1.6232bdd7abcd2p+9"),
    greatest=float.fromhex("0x1.62e42fefa39efp+9"),
    exp=(
        0.5000000000000011, 0.16666666666666435, 0.04166666666652579, 0.008333333333475827,
        0.0013888888944850806, 0.00019841269554923005, 2.480149178213512e-05,
        2.755753678960923e-06, 2.7630728474481154e-07, 2.501749906252604e-08,
    ),
    expm1=(
        0.5, 0.16666666666666677, 0.041666666666666685, 0.008333333333321827,
        0.0013888888888895763, 0.00019841269885207928, 2.4801587269635935e-05,
        2.7557245301991997e-06, 2.755734151354557e-07, 2.5108638701254534e-08,
        2.0889171202127387e-09,
    ),
    exp2=(
        0.6931471805599453, 0.24022650695910172, 0.05550410866482457, 0.009618129107577141,
        0.0013333558145572086, 0.00015403530478672365, 1.5252734729741603e-05,
        1.3215424623336442e-06, 1.0177661451316014e-07, 7.0755838717521515e-09,
        4.518175473503037e-10,
    ),
)  # fmt: skip


def format_of(value: Value) -> Format:
    """Return the constants of the value's type."""
    return SINGLE if value.type.bits == 32 else DOUBLE


def emit_exp(builder: Builder, x: Value) -> Value:
    """Return e^x."""
    form = format_of(x)
    least = (form.vanishing_exponent - 1) * log(2)
    if has_scaling(builder, x.type):
        bounded = _at_most(builder, x, (form.largest_exponent + 1) * log(2))
        power, shifted = _e_to_fraction(builder, bounded)
        return _scaled(builder, power, shifted, _is_at_least(builder, x, least))
    power, shifted = _e_to_fraction(builder, x)
    small = builder.compare("lt", x, builder.constant(form.lowest, x))
    vanished = _is_below(builder, x, least)
    result = scale_by_any_power(builder, power, shifted, small, vanished)
    return _or_infinite(builder, x, result, form.greatest)


def emit_exp2(builder: Builder, x: Value) -> Value:
    """Return 2^x, exact for integers."""
    form = format_of(x)
    if has_scaling(builder, x.type):
        bounded = _at_most(builder, x, form.largest_exponent + 1)
        power, shifted = _two_to_fraction(builder, bounded)
        return _scaled(
            builder, power, shifted, _is_at_least(builder, x, form.vanishing_exponent - 1)
        )
    power, shifted = _two_to_fraction(builder, x)
    small = builder.compare("lt", x, builder.constant(form.least_exponent, x))
    vanished = _is_below(builder, x, form.vanishing_exponent - 1)
    result = scale_by_any_power(builder, power, shifted, small, vanished)
    greatest = form.largest_exponent * (1 - 0.5 ** (form.mantissa_bits + 1))  # the last below
    return _or_infinite(builder, x, result, greatest)


def raise_two(builder: Builder, x: Value, q: Coefficients | None = None) -> Value:
    """Return 2^x for x between the exponents of normal numbers; ``q`` may be a shorter one."""
    return scale_by_power(builder, *_two_to_fraction(builder, x, q))


def _two_to_fraction(
    builder: Builder, x: Value, q: Coefficients | None = None
) -> tuple[Value, Value]:
    """Return ``2^(x - n)`` and ``n + magic``."""
    form = format_of(x)
    magic = builder.constant(form.magic, x)
    shifted = builder.add(x, magic)
    r = builder.subtract(x, builder.subtract(shifted, magic))
    one = builder.constant(1.0, x)
    power = builder.multiply_add(polynomial(builder, r, q or form.exp2), r, one)
    return power, shifted


def _e_to_fraction(builder: Builder, x: Value) -> tuple[Value, Value]:
    """Return ``e^(x - n ln 2)`` and ``n + magic``."""
    shifted, r = reduce_by_ln2(builder, x)
    q = polynomial(builder, r, format_of(x).exp)
    tail = builder.multiply_add(builder.multiply(r, r), q, r)
    return builder.add(tail, builder.constant(1.0, x)), shifted


def emit_expm1(builder: Builder, x: Value) -> Value:
    """Return e^x - 1 without cancellation near 0."""
    form = format_of(x)
    result = expm1_in_range(builder, x)
    # Where e^x - 1 rounds to -1, and beyond, n would leave the range of exponents.
    minus_one = builder.constant(-1.0, x)
    lowest = builder.constant(-(form.mantissa_bits + 2) * log(2), x)
    result = builder.select(builder.compare("lt", x, lowest), minus_one, result)
    return _or_infinite(builder, x, result, form.greatest)


def expm1_in_range(builder: Builder, x: Value) -> Value:
    """Return e^x - 1 for x from -40 up to where e^x overflows; exact at 0, with its sign."""
    form = format_of(x)
    shifted, r = reduce_by_ln2(builder, x)
    q = polynomial(builder, r, form.expm1)
    p = builder.multiply_add(builder.multiply(r, r), q, r)
    # 2^n (p + 1) - 1 as 2 (2^(n-1) p + (2^(n-1) - 1/2)): 2^n itself may overflow.
    half = builder.constant(0.5, x)
    scale = scale_by_power(builder, half, shifted)
    result = builder.multiply_add(scale, p, builder.subtract(scale, half))
    result = builder.add(result, result)
    tiny = builder.constant(0.5 ** (form.mantissa_bits + 2), x)
    is_tiny = builder.compare("lt", builder.intrinsic("fabs", x), tiny)
    return builder.select(is_tiny, x, result)  # also -0, and where halves would vanish


def emit_sigmoid(builder: Builder, x: Value) -> Value:
    """Return 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x: e^-|x| cannot overflow."""
    one = builder.constant(1.0, x)
    e = emit_exp(builder, builder.negate(builder.intrinsic("fabs", x)))
    negative = builder.compare("lt", x, builder.constant(0.0, x))
    return builder.divide(builder.select(negative, e, one), builder.add(one, e))


def reduce_by_ln2(builder: Builder, x: Value) -> tuple[Value, Value]:
    """Return ``n + magic`` and ``x - n ln 2``."""
    form = format_of(x)
    magic = builder.constant(form.magic, x)
    shifted = builder.multiply_add(x, builder.constant(1 / log(2), x), magic)
    n = builder.subtract(shifted, magic)
    r = builder.multiply_add(n, builder.constant(-form.ln2_high, x), x)
    r = builder.multiply_add(n, builder.constant(-form.ln2_low, x), r)
    return shifted, r


def scale_by_power(builder: Builder, value: Value, shifted: Value) -> Value:
    """Return ``value * 2^n`` for normal results, ``shifted`` being ``n + magic``."""
    form = format_of(value)
    bits = builder.bits(shifted)
    exponent = builder.binary("shl", bits, builder.constant(form.mantissa_bits, bits))
    return builder.from_bits(builder.add(builder.bits(value), exponent))


def scale_by_any_power(
    builder: Builder, value: Value, shifted: Value, small: Value, vanished: Value | None = None
) -> Value:
    """Return ``value * 2^n``; ``small`` says where that is subnormal or 0.

    Where ``vanished``, the result is 0, whatever the operands are. A product that underflows takes
    a processor a hundred cycles, and masked scores (-inf) are common: they must not form one.
    """
    bits = builder.bits(shifted)
    extra = builder.select(small, builder.constant(_RAISED, bits), builder.constant(0, bits))
    shifted = builder.from_bits(builder.add(bits, extra))
    result = scale_by_power(builder, value, shifted)
    if vanished is not None:
        result = builder.select(vanished, builder.constant(0.0, value), result)
    down = builder.constant(2.0**-_RAISED, value)
    return builder.multiply(result, builder.select(small, down, builder.constant(1.0, value)))


def _scaled(builder: Builder, value: Value, shifted: Value, counts: Value) -> Value:
    """Return ``value * 2^n`` by the machine's instruction; 0 where the result does not count.

    It rounds subnormal results and overflows by itself, and leaves out the lanes that vanish, which
    would take as long as subnormal results.
    """
    exponent = builder.subtract(shifted, builder.constant(format_of(value).magic, value))
    return scale_where(builder, counts, value, exponent)


def _at_most(builder: Builder, x: Value, limit: float) -> Value:
    """Return the smaller of ``x`` and ``limit``, NaN for NaN."""
    bound = builder.constant(limit, x)
    return builder.select(builder.compare("gt", x, bound), bound, x)


def _is_at_least(builder: Builder, x: Value, limit: float) -> Value:
    """Tell where ``x`` is not below ``limit``: also for NaN."""
    true = constant(True, vector("i1", x.type.lanes))
    return builder.binary("xor", _is_below(builder, x, limit), true)


def _is_below(builder: Builder, x: Value, limit: float) -> Value:
    return builder.compare("lt", x, builder.constant(limit, x))


def _or_infinite(builder: Builder, x: Value, result: Value, greatest: float) -> Value:
    inside = builder.compare("le", x, builder.constant(greatest, x))
    overflowed = builder.multiply(x, builder.constant(inf, x))  # inf, or NaN for NaN
    return builder.select(inside, result, overflowed)
