"""Padding of the last axes: constant, reflected, replicated or circular.

Input:  ``pad(x, pad=(1, 2), mode="reflect")`` with ``x = [a, b, c]``
Output: ``[b, a, b, c, b, a]``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import require_positive


@tl.compute
def pad(x: Any, *, pad: tuple[int, ...], mode: str = "constant", value: float = 0):
    """Return ``x`` with elements added before and after its last axes.

    Parameters
    ----------
    x
        A tensor of any dtype.
    pad
        Pairs (before, after), the last axis first, as ``torch.nn.functional.pad`` has them.
        Negative amounts take elements away.
    mode
        ``"constant"``: new elements are ``value``. ``"reflect"``: the tensor mirrored at its
        first and last element, which are not repeated; ``"replicate"``: these elements;
        ``"circular"``: the tensor over again.
    value
        What the new elements of ``"constant"`` are.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> tl.nn.pad.reference(np.array([1, 2, 3]), pad=(1, 2), mode="reflect")
    array([2, 1, 2, 3, 2, 1])

    """
    amounts = _amounts(pad, x.ndim)
    if mode == "constant":
        return tl.pad(x, amounts, value=value)
    if mode not in _SOURCES:
        raise definition_error(
            f"pad: mode is constant, reflect, replicate or circular, not {mode!r}"
        )
    shape = list(x.shape)
    for axis, (before, after) in amounts.items():
        kept = _kept(x.shape[axis], before, after)
        shape[axis] = kept + max(before, 0) + max(after, 0)
        _check_room(mode, kept, before, after)

    def place_in_x(axis: int, place: Any) -> Any:
        if axis not in amounts:
            return place
        before, after = amounts[axis]
        kept = _kept(x.shape[axis], before, after)
        return _SOURCES[mode](place - max(before, 0), kept) - min(before, 0)

    def source(i: Any) -> tuple[Any, ...]:
        return tuple([place_in_x(axis, place) for axis, place in enumerate(i)])

    return tl.tensor(x[source(i)] for i in tl.grid(shape))


def _amounts(pad: Any, rank: int) -> dict[int, tuple[int, int]]:
    parts: Any = (pad,) if isinstance(pad, int) else pad
    if len(parts) % 2 or len(parts) > 2 * rank or not all(isinstance(p, int) for p in parts):
        raise definition_error(
            f"pad: pad holds pairs (before, after) for at most {rank} axes, the last axis first, "
            f"not {pad!r}"
        )
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {rank - 1 - n: pair for n, pair in enumerate(pairs) if pair != (0, 0)}


def _kept(extent: Any, before: int, after: int) -> Any:
    """Return how many elements of an axis are left when negative amounts are taken away."""
    return extent + min(before, 0) + min(after, 0)


def _check_room(mode: str, extent: Any, before: int, after: int) -> None:
    most = max(before, after)
    if mode == "reflect" and most > 0:
        message = f"pad: reflect needs an axis of more than {most} elements"
        require_positive(extent - most, message)
    elif mode == "circular" and most > 0:
        message = f"pad: circular needs an axis of at least {most} elements"
        require_positive(extent - most + 1, message)
    elif mode == "replicate":
        require_positive(extent, "pad: replicate needs an axis with an element")


def _reflected(place: Any, extent: Any) -> Any:
    before = tl.maximum(place, -place)
    after = extent - 1 - before
    return extent - 1 - tl.maximum(after, -after)


def _replicated(place: Any, extent: Any) -> Any:
    return tl.minimum(tl.maximum(place, 0), extent - 1)


def _circular(place: Any, extent: Any) -> Any:
    return (place + extent) % extent


_SOURCES: dict[str, Callable[[Any, Any], Any]] = {
    "reflect": _reflected,
    "replicate": _replicated,
    "circular": _circular,
}
"""For each mode, where an element comes from, given its place and the extent of the axis."""
