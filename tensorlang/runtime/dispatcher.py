"""Fast calls: which plans a callable keeps, and the machine code that tries them.

Input:  a second call with arrays of the same shapes and strides
Output: from the third on, such calls run without any Python

The code is made once per process, when a call is repeated for the first time. Where it cannot be
made (an interpreter or a NumPy whose objects lie otherwise in memory, no LLVM), calls stay slow,
and right.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from tensorlang.errors import TensorlangError
from tensorlang.runtime.cache import the_store
from tensorlang.runtime.dispatch_code import CODE, DISPATCH, IMPORTS
from tensorlang.runtime.plans import Plan, kind_of_call
from tensorlang.vectorcall import STATE_OFFSET, attach, callable_type, gate, is_supported

MOST_PLANS = 8
"""Plans that a callable keeps; one more, and it starts anew."""

_MOST_SEEN = 256
_NEW_FROM_DESCRIPTOR = 94  # the place of PyArray_NewFromDescr in NumPy's C API, fixed for good


class _State(ctypes.Structure):
    _fields_ = (("head", ctypes.c_size_t), ("slow", ctypes.py_object))


class FastCalls:
    """The plans of one callable; ``slow`` is the ``__call__`` of its class."""

    def __init__(self, slow: Callable[..., Any]) -> None:
        self._state = _State(0, slow)
        self._plans: list[Plan] = []
        self._retired: list[Plan] = []  # in use when they were dropped
        self._seen: dict[tuple[Any, ...], int] = {}
        self._generation = gate.generation
        self._attached = False

    def offer(
        self,
        owner: object,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        make: Callable[[], Plan | None],
    ) -> None:
        """Remember a call of ``owner`` that went well; make it fast the second time.

        ``make`` returns the plan of calls of this kind, None if there can be none.
        """
        kind = kind_of_call(args, keywords)
        if kind is None or gate.tracing:
            return
        with _locks.plans:
            if self._generation != gate.generation:
                self._forget()
            count = self._seen[kind] = self._seen.get(kind, 0) + 1
            if len(self._seen) > _MOST_SEEN:
                self._seen.clear()
        if count != 2:
            return
        dispatch = dispatcher()
        plan = make() if dispatch is not None else None
        if dispatch is None or plan is None or not isinstance(owner, _fast_types(owner)):
            return
        with _locks.plans:
            if len(self._plans) >= MOST_PLANS:
                self._forget()
            self._plans.insert(0, plan)
            plan.then(self._plans[1] if len(self._plans) > 1 else None)
            self._state.head = plan.address
            if not self._attached:
                self._attached = True
                attach(owner, dispatch.address, ctypes.addressof(self._state))

    def _forget(self) -> None:
        self._state.head = 0
        self._retired = [plan for plan in (*self._retired, *self._plans) if plan.is_busy]
        self._plans = []
        self._seen.clear()
        self._generation = gate.generation

    @property
    def plans(self) -> int:
        """How many kinds of calls are fast now."""
        return len(self._plans) if self._generation == gate.generation else 0


def _fast_types(owner: object) -> type:
    """Return the type of instances that have room for a C function."""
    return callable_type(type(owner))


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Machine code in memory: ``PyObject *(self, args, nargsf, kwnames)``."""

    address: int
    engine: Any


@dataclass(slots=True)
class _Locks:
    """Made anew in a forked child, where whoever held one may not exist."""

    plans: threading.Lock = field(default_factory=threading.Lock)
    making: threading.Lock = field(default_factory=threading.Lock)


_locks = _Locks()


def _after_fork_in_child() -> None:
    global _locks
    _locks = _Locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def dispatcher() -> Dispatcher | None:
    """Return the code of fast calls, made at the first request; None where it cannot be made."""
    with _locks.making:
        return _dispatcher()


@cache
def _dispatcher() -> Dispatcher | None:
    if not is_supported() or not arrays_are_as_expected():
        return None
    from tensorlang.backends.llvm import machine

    try:
        symbols: dict[str, int] = dict(zip(IMPORTS, _addresses(), strict=True))
        address, engine = machine.link(_object_code(), DISPATCH, symbols, "tensorlang.dispatch")
    except (TensorlangError, RuntimeError, ImportError):
        return None
    return Dispatcher(address, engine)


def _object_code() -> bytes:
    """Return the machine code: from the store of compiled code, or made and put there."""
    from tensorlang.backends.llvm import machine
    from tensorlang.targets.cpu import host_target

    text = CODE.replace("STATE_OFFSET", str(STATE_OFFSET))
    target = host_target()
    parts = (text, repr(target), version("llvmlite"))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    store = the_store()
    record = store.read(key) if store is not None else None
    if record is not None:
        return record.code
    module = machine.optimise(text, target, 3, vectorize=False)
    code = machine.object_code(module, target, 3)
    if store is not None:
        store.write(key, {"name": "fast calls"}, code)
    return code


def _addresses() -> tuple[int, int, int]:
    """Return the addresses of ``dispatch_code.IMPORTS``."""
    umath: Any = import_module("numpy._core._multiarray_umath")
    get: Any = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(vars(umath)["_ARRAY_API"], None)
    new_array = ctypes.c_size_t.from_address(table + 8 * _NEW_FROM_DESCRIPTOR).value
    return id(np.ndarray), new_array, ctypes.addressof(gate)


class _ArrayStruct(ctypes.Structure):
    """``PyArrayObject_fields`` of NumPy's ndarraytypes.h, without the object's header."""

    _fields_ = (
        ("data", ctypes.c_size_t),
        ("rank", ctypes.c_int),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("base", ctypes.c_size_t),
        ("dtype", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _DtypeStruct(ctypes.Structure):
    """The beginning of ``PyArray_Descr``, without the object's header."""

    _fields_ = (
        ("type", ctypes.c_size_t),
        ("kind", ctypes.c_char),
        ("character", ctypes.c_char),
        ("byte_order", ctypes.c_char),
        ("flags", ctypes.c_char),
        ("number", ctypes.c_int),
    )


@cache
def arrays_are_as_expected() -> bool:
    """Tell whether NumPy's arrays lie in memory as fast calls read them, by looking at some."""
    if object.__basicsize__ != 16 or ctypes.sizeof(ctypes.c_size_t) != 8:
        return False
    samples = [np.zeros((3, 5, 7), np.float32), np.zeros(9, np.int8)[::-2], np.zeros((), ">f8")]
    samples[0].flags.writeable = False
    return all(map(_is_as_expected, samples))


def _is_as_expected(array: np.ndarray[Any, Any]) -> bool:
    rank = array.ndim
    found = _ArrayStruct.from_address(id(array) + object.__basicsize__)
    dtype = _DtypeStruct.from_address(id(array.dtype) + object.__basicsize__)
    return (
        found.data == array.__array_interface__["data"][0]
        and found.rank == rank
        and tuple(found.dims[:rank] if rank else ()) == array.shape
        and tuple(found.strides[:rank] if rank else ()) == array.strides
        and found.dtype == id(array.dtype)
        and found.flags == array.flags.num
        and dtype.number == array.dtype.num
        and dtype.byte_order == array.dtype.byteorder.encode()
    )
