"""Where compiled code is kept: the folder, its bound, and this process's view of it.

Input:  ``TENSORLANG_CACHE=/scratch/code``      Output: ``the_store() -> Store(/scratch/code, ...)``
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tensorlang.config import settings
from tensorlang.runtime.store import Store


@cache
def the_store() -> Store | None:
    """Return the store of this process; None if ``TENSORLANG_CACHE=off``, or without a home."""
    folder = cache_folder(settings().cache)
    return None if folder is None else Store(folder, settings().cache_bytes)


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
