"""What a fast call does, as C structures that ``dispatch_code`` reads.

Input:  the arguments and results of a call that went well, and the kernels that it ran
Output: a ``Plan``: guards that the next call's arguments must pass, and kernels ready to run but
        for the addresses of its arrays

A plan is used by one call at a time (``busy``); a second one meanwhile goes through Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tensorlang.runtime.arrays import Array
from tensorlang.vectorcall import gate

_SLOT = 8


class _Guard(ctypes.Structure):
    _fields_ = (
        ("object", ctypes.c_size_t),  # the very argument, or what makes a result; 0: an array
        ("dtype", ctypes.c_size_t),
        ("rank", ctypes.c_int64),
        ("misalignment", ctypes.c_int64),  # bits that an address must not have
        ("low", ctypes.c_int64),  # where elements begin and end, from the data pointer
        ("high", ctypes.c_int64),
        ("begin", ctypes.c_int64),  # the same as addresses, written while arguments are compared
        ("end", ctypes.c_int64),
        ("shape", ctypes.c_size_t),  # of extents, then strides
    )


class _Patch(ctypes.Structure):
    _fields_ = (("source", ctypes.c_int64), ("slot", ctypes.c_size_t))


class _Step(ctypes.Structure):
    _fields_ = (("entry", ctypes.c_size_t), ("slots", ctypes.c_size_t))


class _Plan(ctypes.Structure):
    _fields_ = (
        ("next", ctypes.c_size_t),
        ("generation", ctypes.c_int64),
        ("busy", ctypes.c_int64),
        ("positional", ctypes.c_int64),
        ("named", ctypes.c_int64),
        ("names", ctypes.c_size_t),
        ("guards", ctypes.c_size_t),
        ("out", ctypes.c_int64),  # the argument that is written to, or -1
        ("outputs", ctypes.c_int64),
        ("makers", ctypes.c_size_t),
        ("patch_count", ctypes.c_int64),
        ("patches", ctypes.c_size_t),
        ("step_count", ctypes.c_int64),
        ("steps", ctypes.c_size_t),
        ("release", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class Result:
    """A result to allocate: by ``maker``, or by NumPy if there is none."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    maker: Callable[[], Array] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel's entry, its slots, and which of them take the address of which array.

    In ``pointers`` an array is its place among the arguments of the call, positional ones first;
    results that are allocated follow.
    """

    entry: int
    slots: bytes
    pointers: tuple[tuple[int, int], ...]  # slot, array


class Plan:
    """C structures for one kind of call, and whatever they point to."""

    def __init__(
        self,
        arguments: Sequence[Any],
        names: Iterable[str],
        out: int,
        results: Sequence[Result],
        steps: Sequence[Step],
        *,
        releases: bool,
        keep_alive: object = None,
    ) -> None:
        listed = tuple(names)
        self._keep_alive: list[object] = [keep_alive, listed, *results]
        guards = (_Guard * max(1, len(arguments)))()
        for guard, argument in zip(guards, arguments, strict=False):
            self._fill_guard(guard, argument)
        makers = (_Guard * max(1, len(results)))()
        for maker, result in zip(makers, results, strict=False):
            self._fill_maker(maker, result)
        prepared, patches = self._prepare(steps)
        self._struct = _Plan(
            generation=gate.generation,
            positional=len(arguments) - len(listed),
            named=len(listed),
            names=self._address((ctypes.c_size_t * max(1, len(listed)))(*map(id, listed))),
            guards=self._address(guards),
            out=out,
            outputs=len(results),
            makers=self._address(makers),
            patch_count=len(patches),
            patches=self._address(patches),
            step_count=len(steps),
            steps=self._address(prepared),
            release=int(releases),
        )
        self.address = ctypes.addressof(self._struct)

    @property
    def is_busy(self) -> bool:
        """Whether a call is using it just now."""
        return bool(self._struct.busy)

    def then(self, following: Plan | None) -> None:
        """Try ``following`` when this plan does not fit."""
        self._struct.next = following.address if following is not None else 0

    def _address(self, structure: Any) -> int:
        self._keep_alive.append(structure)
        return ctypes.addressof(structure)

    def _fill_guard(self, guard: _Guard, argument: Any) -> None:
        if type(argument) is not np.ndarray:
            self._keep_alive.append(argument)
            guard.object = id(argument)
            return
        array = cast("Array", argument)
        self._fill_array(guard, array.dtype, array.shape, array.strides)
        guard.low, guard.high = extent_in_bytes(array)

    def _fill_maker(self, guard: _Guard, result: Result) -> None:
        self._fill_array(guard, result.dtype, result.shape, ())
        if result.maker is not None:
            guard.object = id(result.maker)  # kept alive by ``results``

    def _fill_array(
        self,
        guard: _Guard,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self._keep_alive.append(dtype)
        guard.dtype, guard.rank = id(dtype), len(shape)
        guard.misalignment = dtype.itemsize - 1
        numbers = (*shape, *strides)
        guard.shape = self._address((ctypes.c_int64 * max(1, len(numbers)))(*numbers))

    def _prepare(self, steps: Sequence[Step]) -> tuple[ctypes.Array[_Step], Any]:
        prepared = (_Step * max(1, len(steps)))()
        patches: list[_Patch] = []
        for target, step in zip(prepared, steps, strict=False):
            target.entry = step.entry
            slots = self._address(ctypes.create_string_buffer(step.slots, len(step.slots)))
            target.slots = slots
            patches += [_Patch(array, slots + slot * _SLOT) for slot, array in step.pointers]
        return prepared, (_Patch * len(patches))(*patches)


def extent_in_bytes(array: Array) -> tuple[int, int]:
    """Return where the elements of an array begin and end, relative to its first one.

    >>> extent_in_bytes(np.zeros((2, 3), np.int8)[::-1])
    (-3, 3)
    """
    if array.size == 0:
        return 0, 0
    steps = [
        stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)
    ]
    low = sum(step for step in steps if step < 0)
    return low, sum(step for step in steps if step > 0) + array.dtype.itemsize


_IMMUTABLE = (int, float, bool, str, type(None))


def kind_of_call(args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return what decides which plan fits a call, or None if none can."""
    kinds: list[Any] = [len(args), *keywords]
    for value in (*args, *keywords.values()):
        if type(value) is np.ndarray:
            array = cast("Array", value)
            kinds.append((array.dtype.num, array.dtype.isnative, array.shape, array.strides))
        elif type(value) in _IMMUTABLE:
            kinds.append((type(value), value))
        else:
            return None
    return tuple(kinds)


def places_of(
    inputs: Sequence[Array], args: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """Return at which argument of the call each input stands; None where it cannot be told."""
    given = [*args, *[value for name, value in keywords.items() if name != "out"]]
    arrays = [place for place, value in enumerate(given) if type(value) is np.ndarray]
    identities = [id(given[place]) for place in arrays]
    if len(arrays) != len(inputs):
        return None
    if len(set(identities)) == len(identities):
        known = dict(zip(identities, arrays, strict=True))
        places = [known.get(id(array), -1) for array in inputs]
    elif keywords.keys() <= {"out"} and identities == [id(array) for array in inputs]:
        places = arrays  # f(x, x): only their order tells them apart
    else:
        return None
    if -1 in places:
        return None
    names = list(keywords)
    out = len(args) + names.index("out") if "out" in names else len(args) + len(names)
    return tuple([place + (place >= out) for place in places])
