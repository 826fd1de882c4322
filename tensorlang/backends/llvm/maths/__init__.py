"""Elementary functions as vector instructions, one family a file.

Input:  ``FUNCTIONS["exp"](builder, x)``, x a scalar or vector of f32 or f64
Output: a value of the same type; no call of the C library (but one, see ``fused.py``)

Each file states its method and its error bound. They are written over ``Builder`` alone, without
fast-math flags, so that any backend of LLVM can use them.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorlang.backends.llvm.maths.error_function import emit_erf
from tensorlang.backends.llvm.maths.exponential import (
    emit_exp,
    emit_exp2,
    emit_expm1,
    emit_sigmoid,
)
from tensorlang.backends.llvm.maths.fused import emit_fma
from tensorlang.backends.llvm.maths.hyperbolic import emit_cosh, emit_sinh, emit_tanh
from tensorlang.backends.llvm.maths.inverse_trigonometric import (
    emit_acos,
    emit_asin,
    emit_atan,
    emit_atan2,
)
from tensorlang.backends.llvm.maths.logarithm import emit_log, emit_log1p, emit_log2
from tensorlang.backends.llvm.maths.power import emit_pow
from tensorlang.backends.llvm.maths.rounding import emit_ceil, emit_floor, emit_round, emit_trunc
from tensorlang.backends.llvm.maths.trigonometric import emit_cos, emit_sin, emit_tan
from tensorlang.backends.llvm.types import Value

FUNCTIONS: dict[str, Callable[..., Value]] = {
    "exp": emit_exp,
    "exp2": emit_exp2,
    "expm1": emit_expm1,
    "sigmoid": emit_sigmoid,
    "log": emit_log,
    "log2": emit_log2,
    "log1p": emit_log1p,
    "tanh": emit_tanh,
    "sinh": emit_sinh,
    "cosh": emit_cosh,
    "erf": emit_erf,
    "sin": emit_sin,
    "cos": emit_cos,
    "tan": emit_tan,
    "asin": emit_asin,
    "acos": emit_acos,
    "atan": emit_atan,
    "atan2": emit_atan2,
    "pow": emit_pow,
    "fma": emit_fma,
    "floor": emit_floor,
    "ceil": emit_ceil,
    "round": emit_round,
    "trunc": emit_trunc,
}
