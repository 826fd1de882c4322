"""erf, in two ranges that are both computed and one of them chosen.

    |x| < 1:   x + x P(x^2)
    |x| >= 1:  1 - 2^-g(|x|),   g = -log2(1 - erf), smooth, by a polynomial

The second loses nothing: what is subtracted from 1 is at most 0.16. Error in units of the last
place, tested in f32 and f64: 1.9.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.exponential import raise_two
from tensorlang.backends.llvm.maths.polynomial import Coefficients, polynomial
from tensorlang.backends.llvm.types import Value


@dataclass(frozen=True, slots=True)
class Format:
    """``near`` is P, ``far`` is g; from ``limit`` on the result rounds to 1."""

    near: Coefficients
    far: Coefficients
    limit: float


SINGLE = Format(
    near=(
        0.12837916612625122, -0.3761262595653534, 0.11283578723669052, -0.026853347197175026,
        0.005187162198126316, -0.0007997853099368513, 7.806903158780187e-05,
    ),
    far=(
        0.000492912600748241, 1.6260452270507812, 0.9206495881080627, 0.14875057339668274,
        -0.03150515630841255, 0.004252431448549032, -0.00026887140120379627,
    ),
    limit=4.0,
)  # fmt: skip
DOUBLE = Format(
    near=(
        0.12837916709551256, -0.37612638903183343, 0.11283791670936955, -0.026866170641960622,
        0.005223977596754945, -0.0008548325486166554, 0.00012055280534483324,
        -1.4924466318955851e-05, 1.6444157056526698e-06, -1.618401764262256e-07,
        1.3616682650874165e-08, -7.607492382403038e-10,
    ),
    far=(
        9.947006931419621e-07, 1.6278972049513072, 0.9184933200652727, 0.1481415679437809,
        -0.02734626060129583, -0.0006588019227112395, 0.0028291058420970576,
        -0.0011601732913390475, 0.00022230563457668832, 1.7465557909447735e-05,
        -2.924955222815384e-05, 1.1749232315053471e-05, -3.0211317514425987e-06,
        5.579810913051607e-07, -7.551476090734728e-08, 7.357155216623318e-09,
        -4.90150901421053e-10, 2.0016562064480992e-11, -3.7801626308566927e-13,
    ),
    limit=6.0,
)  # fmt: skip


def emit_erf(builder: Builder, x: Value) -> Value:
    """Return the error function."""
    form = SINGLE if x.type.bits == 32 else DOUBLE
    one = builder.constant(1.0, x)
    limit = builder.constant(form.limit, x)
    magnitude = builder.intrinsic("fabs", x)
    near = polynomial(builder, builder.multiply(x, x), form.near)
    near = builder.multiply_add(x, near, x)
    clamped = builder.select(builder.compare("lt", limit, magnitude), limit, magnitude)
    g = polynomial(builder, clamped, form.far)
    far = builder.subtract(one, raise_two(builder, builder.negate(g)))
    far = builder.intrinsic("copysign", far, x)
    return builder.select(builder.compare("ge", magnitude, one), far, near)  # NaN is near
