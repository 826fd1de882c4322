"""Polynomials, the body of every elementary function.

Input:  ``polynomial(builder, x, (c0, c1, c2, c3))``
Output: ``(c0 + c1 x) + x^2 (c2 + c3 x)`` in fused multiply-adds

Pairs are combined as in Estrin's scheme: the chain of dependent operations is logarithmic in the
degree, and throughput is what a chain of them leaves in the scheduler's window. Coefficients come
from ``tests/backends/fit_polynomials.py`` (a Remez exchange in high precision) and are rounded one
after the other, the rest fitted again each time.
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import Value

Coefficients = tuple[float, ...]


def polynomial(builder: Builder, x: Value, coefficients: Coefficients) -> Value:
    """Return ``sum(coefficient[k] * x**k)``; short ones by Horner's rule."""
    terms = [builder.constant(coefficient, x) for coefficient in coefficients]
    if len(terms) <= 4:
        return _horner(builder, x, terms)
    power = x
    while len(terms) > 2:
        pairs: list[Value] = []
        for low in range(0, len(terms) - 1, 2):
            pairs.append(builder.multiply_add(power, terms[low + 1], terms[low]))
        if len(terms) % 2:
            pairs.append(terms[-1])
        terms, power = pairs, builder.multiply(power, power)
    return builder.multiply_add(power, terms[1], terms[0])


def _horner(builder: Builder, x: Value, terms: list[Value]) -> Value:
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = builder.multiply_add(result, x, term)
    return result
