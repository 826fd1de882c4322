"""Make a value once per key, also when several threads ask for it at the same time.

Input:  two threads that call ``matmul(A, B)`` for the first time     Output: one compilation
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class OncePerKey(Generic[Key, Value]):
    """A dictionary that fills itself; keys do not wait for each other."""

    def __init__(self) -> None:
        self._values: dict[Key, Value] = {}
        self._locks: dict[Key, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of ``key``, made by ``make`` the first time.

        If ``make`` raises, nothing is remembered, and the next call tries again.
        """
        try:
            return self._values[key]
        except KeyError:
            pass
        with self._lock:
            lock = self._locks.setdefault(key, threading.RLock())
        with lock:
            if key not in self._values:
                self._values[key] = make()
                self._locks.pop(key, None)
            return self._values[key]
