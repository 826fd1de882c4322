"""``assert_close``: equality of results up to the rounding of their dtype.

Input:  two arrays (or tuples of arrays)
Output: nothing, or AssertionError that shows the element that is furthest off
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tensorlang.dtypes import from_numpy, is_float

Array = NDArray[Any]

_ROUNDINGS = 16
_SIGNIFICANT_BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}


@dataclass(frozen=True, slots=True)
class _Tolerance:
    """How far elements may be off: ``absolute + relative * |expected|``."""

    relative: float
    absolute: float
    name: str


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    terms: int | None = None,
) -> None:
    """Assert that results agree up to rounding; NaN agrees with NaN, an infinity with itself.

    Parameters
    ----------
    actual, expected
        Arrays of one shape (of any kind that NumPy can read), or tuples of them.
    rtol, atol
        How far an element may be off: ``atol + rtol * abs(expected)``. By default sixteen
        roundings of the less precise floating dtype (four of f16 and bf16), relative to the
        element, and the same beside values around 1. Integers and bool must be equal.
    terms
        How many values a sum adds up. Its rounding errors are relative to its terms, which may
        cancel, so the default tolerances grow by ``terms`` roundings of the largest element.

    Raises
    ------
    AssertionError
        With the worst element: its index, both values, and the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> assert_close(np.float32([1, 2]), np.float64([1, 2 + 1e-7]))
    >>> assert_close(np.float32([1, 2]), np.float64([1, 3]))
    Traceback (most recent call last):
    AssertionError: 1 of 2 elements is not close (f32: rtol=1.9e-06, atol=1.9e-06)
    worst at [1]: 2.0, expected 3.0; off by 1, allowed 7.6e-06

    """
    if isinstance(actual, tuple) or isinstance(expected, tuple):
        _assert_all_close(actual, expected, rtol, atol, terms)
        return
    message = _difference(_as_array(actual), _as_array(expected), rtol, atol, terms)
    if message:
        raise AssertionError(message)


def _assert_all_close(
    actual: Any, expected: Any, rtol: float | None, atol: float | None, terms: int | None
) -> None:
    actuals, expecteds = (
        cast("tuple[Any, ...]", part) if isinstance(part, tuple) else (part,)
        for part in (actual, expected)
    )
    if len(actuals) != len(expecteds):
        raise AssertionError(f"{len(actuals)} results, expected {len(expecteds)}")
    for number, (left, right) in enumerate(zip(actuals, expecteds, strict=True)):
        message = _difference(_as_array(left), _as_array(right), rtol, atol, terms)
        if message:
            raise AssertionError(f"result {number}: {message}")


def _as_array(value: Any) -> Array:
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def _difference(
    actual: Array, expected: Array, rtol: float | None, atol: float | None, terms: int | None
) -> str:
    """Return what is wrong; empty when the arrays agree."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    tolerance = _tolerance(actual, expected, terms)
    if tolerance is None:
        return _unequal(actual, expected)
    relative = tolerance.relative if rtol is None else rtol
    absolute = tolerance.absolute if atol is None else atol
    left, right = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.abs(left - right)
        allowed = absolute + relative * np.abs(right)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        # an infinite tolerance, of an infinite element, allows nothing
        close = same | ((off <= allowed) & np.isfinite(right))
        # what is not comparable (NaN, infinity) is further off than anything else
        excess = np.where(close, -1.0, np.where(np.isfinite(off), off / allowed, np.inf))
    if close.all():
        return ""
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    head = (
        f"{_count(~close)} not close ({tolerance.name}: rtol={relative:.2g}, atol={absolute:.2g})"
    )
    return (
        f"{head}\nworst at {_place(worst)}: {actual[worst]}, expected {expected[worst]}; "
        f"off by {off[worst]:.3g}, allowed {allowed[worst]:.2g}"
    )


def _unequal(actual: Array, expected: Array) -> str:
    wrong = actual != expected
    if not wrong.any():
        return ""
    first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return (
        f"{_count(wrong)} not equal\n"
        f"first at {_place(first)}: {actual[first]}, expected {expected[first]}"
    )


def _tolerance(actual: Array, expected: Array, terms: int | None) -> _Tolerance | None:
    """Return the default for the less precise floating dtype, None where equality is asked."""
    dtypes = [from_numpy(array.dtype) for array in (actual, expected)]
    names = [dtype.name for dtype in dtypes if dtype is not None and is_float(dtype)]
    if not names:
        return None
    name = min(names, key=_SIGNIFICANT_BITS.__getitem__)
    epsilon = 2.0 ** (1 - _SIGNIFICANT_BITS[name])
    relative = (_ROUNDINGS if _SIGNIFICANT_BITS[name] > 16 else 4) * epsilon
    absolute = relative
    if terms is not None:
        finite = np.abs(expected.astype(np.float64))
        finite = finite[np.isfinite(finite)]
        relative += terms * epsilon
        absolute += terms * epsilon * max(float(finite.max(initial=0.0)), 1.0)
    return _Tolerance(relative, absolute, name)


def _count(wrong: Array) -> str:
    count = int(wrong.sum())
    return f"{count} of {wrong.size} elements {'is' if count == 1 else 'are'}"


def _place(index: tuple[Any, ...]) -> str:
    return f"[{', '.join(str(int(position)) for position in index) or '()'}]"
