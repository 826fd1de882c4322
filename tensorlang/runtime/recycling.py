"""Memory of large results, used again once nobody can see it any more.

Input:  a result of 64 MiB whose last reference is dropped
Output: the next result of about that size lies in the same memory, whose pages exist already

The first write to fresh pages costs more than many operators take (64 MiB: tens of milliseconds on
pages of 4 KiB, several on huge ones, which NumPy asks for from 4 MiB). A result is a view of a
*lease*, an object of which every array, view and buffer of that memory holds a reference; the
memory comes back when the lease is deleted, so never while something can reach it.

Idle memory is bounded (``TENSORLANG_RECYCLE``, 256 MiB): what was returned longest ago is freed.
Nothing here waits for a lock, for finalizers run at any point of any thread.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any

import numpy as np

from tensorlang.config import settings
from tensorlang.runtime.arrays import Array, address_of

ALIGNMENT = 64

FROM_BYTES = 1 << 19
"""Results from this size are recycled; the C library reuses smaller ones well enough."""


class _Lease:
    """Memory that is in use; deleting the lease returns it."""

    __slots__ = ("__array_interface__", "_memory", "_pool")

    def __init__(self, pool: Pool, memory: Array, size: int) -> None:
        self._pool, self._memory = pool, memory
        start = address_of(memory) + -address_of(memory) % ALIGNMENT
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size,), "data": (start, False),
        }  # fmt: skip

    def __del__(self) -> None:
        self._pool.give_back(self._memory)


class Pool:
    """Idle memory by size, at most ``bound`` bytes of it."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.idle_bytes = 0
        self._idle: dict[int, list[Array]] = {}  # the sizes returned longest ago first
        self._returned: deque[Array] = deque()
        self._lock = threading.Lock()

    def lease(self, size: int) -> Array:
        """Return ``size`` bytes, aligned and uninitialised, or raise MemoryError."""
        rounded = _rounded(size) + ALIGNMENT
        memory = self._take(rounded)
        if memory is None:
            try:
                memory = np.empty(rounded, np.uint8)
            except MemoryError:
                self.clear()
                memory = np.empty(rounded, np.uint8)
        return np.asarray(_Lease(self, memory, size))

    def give_back(self, memory: Array) -> None:
        """Keep memory for later; called by finalizers, so it may not wait."""
        self._returned.append(memory)
        while self._returned and self._lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self._lock.release()

    def clear(self) -> None:
        """Free all idle memory, unless another thread is at it just now."""
        if self._lock.acquire(blocking=False):
            try:
                self._returned.clear()
                self._idle.clear()
                self.idle_bytes = 0
            finally:
                self._lock.release()

    def after_fork(self) -> None:
        """Forget who held the lock: that thread does not exist in a forked child."""
        self._lock = threading.Lock()

    def _take(self, size: int) -> Array | None:
        if not self._lock.acquire(blocking=False):
            return None
        try:
            waiting = self._idle.get(size)
            if not waiting:
                return None
            self.idle_bytes -= size
            memory = waiting.pop()
            if not waiting:
                del self._idle[size]
            return memory
        finally:
            self._lock.release()

    def _settle(self) -> None:
        """Sort in what was returned, the lock being held; free what is beyond the bound."""
        while self._returned:
            memory = self._returned.popleft()
            if memory.nbytes > self.bound:
                continue
            waiting = self._idle.pop(memory.nbytes, [])
            waiting.append(memory)
            self._idle[memory.nbytes] = waiting
            self.idle_bytes += memory.nbytes
            while self.idle_bytes > self.bound:
                self._free_oldest()

    def _free_oldest(self) -> None:
        size = next(iter(self._idle))
        waiting = self._idle[size]
        waiting.pop(0)
        self.idle_bytes -= size
        if not waiting:
            del self._idle[size]


def _rounded(size: int) -> int:
    """Return ``size`` rounded up by at most an eighth, so that similar sizes share memory.

    >>> _rounded(1000), _rounded(1024)
    (1024, 1024)
    """
    step = max(1, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


_pools: list[Pool] = []


def pool() -> Pool:
    """Return the process's pool."""
    if not _pools:
        _pools.append(Pool(settings().recycled_bytes))
    return _pools[0]


def _after_fork_in_child() -> None:
    for known in _pools:
        known.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialised array in C order whose data begins at a multiple of 64 bytes."""
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if size >= FROM_BYTES and size <= pool().bound:
        return np.ndarray(shape, dtype, pool().lease(size))
    # NumPy's own arrays begin at multiples of 16 bytes, large ones never at one of 64
    memory = np.empty(size + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, memory, -address_of(memory) % ALIGNMENT)
