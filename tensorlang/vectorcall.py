"""Python types whose instances can be called through a C function: Python's *vectorcall* protocol.

Input:  ``class Function`` with a ``__call__`` in Python
Output: a subclass with two more words per instance: the address of a C function
        ``PyObject *(self, args, nargsf, kwnames)``, and a pointer that this function reads

As long as no address is attached, a call runs ``__call__``; so instances are complete objects from
the start, and the C function may be made later, or never. Methods, ``__dict__``, weak references
and garbage collection are those of the Python class.

``gate`` is read by every such function. It closes the short way for all of them at once: while an
operator is traced, and for plans that were made before the number of threads changed.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import cache
from typing import Any, TypeVar

Base = TypeVar("Base", bound=type)

FUNCTION_OFFSET = 64
STATE_OFFSET = FUNCTION_OFFSET + 8
_BASICSIZE = STATE_OFFSET + 8

# of CPython's stable headers: structmember.h, typeslots.h, object.h
_T_PYSSIZET, _READONLY, _PY_TP_MEMBERS = 19, 1, 72
_TPFLAGS_BASETYPE, _TPFLAGS_HAVE_VECTORCALL = 1 << 10, 1 << 11


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


class Gate(ctypes.Structure):
    """What closes the short way: ``generation`` differs from a plan's, or ``tracing`` is not 0."""

    _fields_ = (("generation", ctypes.c_int64), ("tracing", ctypes.c_int64))

    generation: int
    tracing: int


gate = Gate(1, 0)
_lock = threading.Lock()
_kept: list[object] = []  # what the types' C structures point to, for the life of the process


def close_gate() -> None:
    """Let every call in the process take the long way, through Python, until ``open_gate``."""
    with _lock:
        gate.tracing += 1


def open_gate() -> None:
    """Undo one ``close_gate``."""
    with _lock:
        gate.tracing -= 1


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def forget_plans() -> None:
    """Let the next call of every function take the long way; what it remembers is out of date."""
    gate.generation += 1  # only ever compared for equality; two threads may count as one


@cache
def is_supported() -> bool:
    """Tell whether this interpreter is one whose objects are laid out as expected."""
    is_gil_enabled = getattr(sys, "_is_gil_enabled", lambda: True)
    return (
        sys.implementation.name == "cpython"
        and sys.version_info >= (3, 11)
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and bool(is_gil_enabled())
    )


@cache
def callable_type(base: Base) -> Base:
    """Return a subclass of ``base`` with room for a C function; ``base`` itself where unsupported.

    The C function receives what the instance was called with, and must itself fall back to
    ``base.__call__``.
    """
    has_room = bool(base.__flags__ & _TPFLAGS_HAVE_VECTORCALL)
    if has_room or not is_supported() or base.__basicsize__ > FUNCTION_OFFSET:
        return base
    members = (_Member * 2)(
        _Member(b"__vectorcalloffset__", _T_PYSSIZET, FUNCTION_OFFSET, _READONLY, None)
    )
    slots = (_Slot * 2)(_Slot(_PY_TP_MEMBERS, ctypes.addressof(members)))
    name = f"{base.__module__}.{base.__qualname__}".encode()
    flags = _TPFLAGS_BASETYPE | _TPFLAGS_HAVE_VECTORCALL
    spec = _Spec(name, _BASICSIZE, 0, flags, slots)
    make: Any = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
    made = make(ctypes.addressof(spec), (base,))
    _kept.extend((members, slots, spec, name))
    return made


def attach(instance: object, function: int, state: int) -> None:
    """Let calls of ``instance`` run the C function at an address; it finds ``state`` beside it.

    ``instance`` must be of a type that ``callable_type`` made, and keep alive what it is given.
    """
    ctypes.c_size_t.from_address(id(instance) + STATE_OFFSET).value = state
    ctypes.c_size_t.from_address(id(instance) + FUNCTION_OFFSET).value = function
