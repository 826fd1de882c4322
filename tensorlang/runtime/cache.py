"""Where compiled code is kept: the folder, its bound, and this process's view of it.

Input:  ``TENSORLANG_CACHE=/scratch/code``      Output: ``the_store() -> Store(/scratch/code, ...)``
"""

from __future__ import annotations

from functools import cache

from tensorlang.config import cache_folder, settings
from tensorlang.runtime.store import Store


@cache
def the_store() -> Store | None:
    """Return the store of this process; None if ``TENSORLANG_CACHE=off``, or without a home."""
    folder = cache_folder(settings().cache)
    return None if folder is None else Store(folder, settings().cache_bytes)
