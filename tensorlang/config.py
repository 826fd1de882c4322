"""Settings, read from the environment once.

Input:  ``TENSORLANG_NUM_THREADS=4``       Output: ``Settings(num_threads=4)``

=========================  ====================================================================
variable                   meaning
=========================  ====================================================================
``TENSORLANG_NUM_THREADS``  threads that a compiled function may use; without it,
                           ``OMP_NUM_THREADS``, else the processors this process may run on
``TENSORLANG_OPENMP``      ``auto`` (the default): an OpenMP runtime that is loaded already, else
                           one of the machine, else threads of the operating system; ``system``:
                           those; ``none``: run on one thread; or a path to a library
``TENSORLANG_PARALLEL_FROM``  microseconds of estimated work on one thread from which a call is
                           worth several: by default 20, or 3 where idle threads spin; 0 makes
                           every parallel loop run in parallel
``TENSORLANG_RECYCLE``     mebibytes of large results that nobody uses any more to keep for the next
                           ones (256); 0 returns them to the system at once
``TENSORLANG_CACHE``       the folder of compiled code; ``off`` keeps none; by default the user's
                           cache folder (``XDG_CACHE_HOME``, else ``~/.cache/tensorlang``)
``TENSORLANG_CACHE_SIZE``  the most that it may hold, such as ``500M`` or ``2G`` (1G)
``TENSORLANG_CPU``         the processor that the target ``"cpu"`` means, by LLVM's name for it:
                           code of an older one runs here and shows what runs there; without it,
                           this machine's
``TENSORLANG_TARGET``      the target of operators that are called without ``tl.compile``
=========================  ====================================================================
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CACHE_BYTES = 1 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


_RECYCLED = 256 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says; the defaults hold when it says nothing."""

    num_threads: int | None = None
    openmp: str = "auto"
    parallel_from: float | None = None
    target: str = "cpu"
    recycled_bytes: int = _RECYCLED
    cache: str = "auto"
    cache_bytes: int = _CACHE_BYTES
    cpu: str = "native"


def check_python() -> None:
    """Raise ImportError in a Python without its global lock, with which nothing was checked."""
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)
    if not is_locked():
        raise ImportError(
            "tensorlang was not checked with free-threaded Python, and calls rely on its lock.\n"
            "Set PYTHON_GIL=1 to run with the lock, or use the usual build of Python."
        )


@cache
def settings() -> Settings:
    """Return the settings of this process, read at the first call."""
    return read_settings(os.environ)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings that ``environment`` asks for.

    Raises ValueError, naming the variable, for a value that has no meaning.

    >>> read_settings({"TENSORLANG_NUM_THREADS": "4"}).num_threads
    4
    """
    return Settings(
        num_threads=_num_threads(environment),
        openmp=environment.get("TENSORLANG_OPENMP", "").strip() or "auto",
        parallel_from=_microseconds(environment),
        target=environment.get("TENSORLANG_TARGET", "").strip() or "cpu",
        recycled_bytes=_recycled(environment),
        cache=_cache(environment),
        cache_bytes=_cache_bytes(environment),
        cpu=environment.get("TENSORLANG_CPU", "").strip() or "native",
    )


def _num_threads(environment: Mapping[str, str]) -> int | None:
    text = environment.get("TENSORLANG_NUM_THREADS", "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"TENSORLANG_NUM_THREADS must be an integer >= 1, found {text!r}")
        return int(text)
    # OMP_NUM_THREADS may list a number per nesting level, and OpenMP ignores what it cannot read
    outermost = environment.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(outermost) if outermost.isdecimal() and int(outermost) >= 1 else None


def _microseconds(environment: Mapping[str, str]) -> float | None:
    text = environment.get("TENSORLANG_PARALLEL_FROM", "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise ValueError(f"TENSORLANG_PARALLEL_FROM must be a number >= 0, found {text!r}")
    return value


def _recycled(environment: Mapping[str, str]) -> int:
    text = environment.get("TENSORLANG_RECYCLE", "").strip()
    if text and not text.isdecimal():
        raise ValueError(f"TENSORLANG_RECYCLE must be a number of mebibytes >= 0, found {text!r}")
    return int(text) << 20 if text else _RECYCLED


def _cache(environment: Mapping[str, str]) -> str:
    text = environment.get("TENSORLANG_CACHE", "").strip()
    return "off" if text.lower() in ("off", "none", "0") else text or "auto"


def _cache_bytes(environment: Mapping[str, str]) -> int:
    text = environment.get("TENSORLANG_CACHE_SIZE", "").strip()
    if not text:
        return _CACHE_BYTES
    try:
        return read_bytes(text)
    except ValueError as error:
        raise ValueError(f"TENSORLANG_CACHE_SIZE must be {error}") from None


def read_bytes(text: str) -> int:
    """Return the number of bytes that ``text`` says; raises ValueError if it says none.

    >>> read_bytes("2G") == 2 * 1024**3
    True
    """
    number = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = number[-1:] if number[-1:].isalpha() else ""
    digits = number.removesuffix(unit).strip()
    if not digits.isdecimal() or unit not in _UNITS:
        raise ValueError(f"a number of bytes such as 500M or 2G, found {text!r}")
    return int(digits) * _UNITS[unit]


def cache_folder(wish: str) -> Path | None:
    """Return the folder for ``wish``: "auto", "off", or a path.

    >>> cache_folder("off") is None
    True
    """
    if wish == "off":
        return None
    try:
        if wish != "auto":
            return Path(wish).expanduser().absolute()
        from platformdirs import user_cache_path

        folder = user_cache_path("tensorlang", appauthor=False) / "code"
        return folder if folder.is_absolute() else None  # "~" stays where there is no home
    except (OSError, RuntimeError):  # neither HOME nor an entry for the user
        return None
