"""How many threads a call uses, and from which thread it may start them.

Input:  ``tl.set_num_threads(4)``         Output: ``num_threads() == 4``

After a ``fork``, GNU's runtime waits forever when the thread that forked starts a parallel loop:
its record of a thread pool, kept per thread, names threads that exist in the parent only. A *new*
thread of the child has no such record, and its parallel loops run. So calls from the surviving
thread go through a helper thread, one for the life of the child.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tensorlang.config import settings
from tensorlang.runtime.openmp import OpenMP, find_openmp
from tensorlang.vectorcall import forget_plans


@dataclass(slots=True)
class _State:
    """The process's choice of threads, and what a fork left behind."""

    wanted: int | None = None
    available: int | None = None
    openmp: OpenMP | None = None
    survivor: int | None = None  # the thread that came through a fork
    helper: _Helper | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Helper:
    """A thread that runs calls on behalf of another, one after the other."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="tensorlang-after-fork", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._tasks.get()()

    def run(self, call: Callable[[], int]) -> int:
        results: list[int] = []
        errors: list[BaseException] = []
        done = threading.Event()

        def task() -> None:
            try:
                results.append(call())
            except BaseException as error:  # raised again by the caller, below
                errors.append(error)
            finally:
                done.set()

        self._tasks.put(task)
        while not done.is_set():  # the call writes to arrays of the caller: never leave early
            try:
                done.wait()
            except KeyboardInterrupt as error:
                errors.append(error)
        if errors:
            raise errors[-1]
        return results[0]


_state = _State()


def num_threads() -> int:
    """Return how many threads a compiled function may use.

    That is what ``set_num_threads`` said last, else ``TENSORLANG_NUM_THREADS``, else
    ``OMP_NUM_THREADS``, else the number of processors that this process may run on.

    >>> num_threads() >= 1
    True
    """
    if _state.wanted is not None:
        return _state.wanted
    if _state.available is None:
        _state.available = settings().num_threads or _processors()
    return _state.available


def set_num_threads(number: int) -> None:
    """Let compiled functions use at most ``number`` threads, from the next call on.

    Results do not depend on it. Raises ValueError for a number below 1, and TypeError for what is
    not an integer.
    """
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise TypeError(f"the number of threads must be an integer, found {number!r}")
    number = number.__index__()
    if number < 1:
        raise ValueError(f"the number of threads must be at least 1, found {number}")
    _state.wanted = number
    forget_plans()


def threads_for(serial_seconds: float) -> int:
    """Return how many threads to give a call that one thread would finish in ``serial_seconds``.

    Little work stays on one, and a thread more must have half of what several are worth it from.
    """
    runtime = openmp()
    worth = settings().parallel_from
    if worth is None:
        worth = runtime.start_microseconds
    microseconds = serial_seconds * 1e6
    if microseconds < worth or not runtime.is_parallel:
        return 1
    if not worth:
        return num_threads()
    return min(num_threads(), max(2, int(2 * microseconds / worth)))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def openmp() -> OpenMP:
    """Return the runtime of parallel loops, found when first needed."""
    found = _state.openmp
    if found is None:
        found = find_openmp(settings().openmp)
        with _state.lock:
            if _state.openmp is None:
                _state.openmp = found
                if not found.was_loaded:
                    _state.survivor = None  # it came after the fork, and knows nothing of it
    return found


def threads_start_anywhere() -> bool:
    """Tell whether any thread of this process may start parallel loops; see the module."""
    return _state.survivor is None


def call_with_threads(call: Callable[[], int]) -> int:
    """Return ``call()``, which may start parallel loops, from a thread where those can run."""
    if _state.survivor is None or _state.survivor != threading.get_ident():
        return call()
    with _state.lock:
        if _state.helper is None:
            _state.helper = _Helper()
        helper = _state.helper
    return helper.run(call)


def _after_fork_in_child() -> None:
    _state.lock = threading.Lock()
    _state.helper = None
    _state.available = None
    _state.survivor = threading.get_ident()
    forget_plans()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
