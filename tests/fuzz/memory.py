"""Arrays that lie against a page that may not be touched: one element too far ends the process.

Input:  an array      Output: an equal array whose last byte is the last of its page
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE
_kept: list[mmap.mmap] = []


def fenced(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy that ends right before, and is preceded by, forbidden pages.

    The gap before its first element is less than a page, and none if it fills whole pages.
    """
    pages = max(1, -(-array.nbytes // PAGE))
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    _kept.append(memory)  # views keep no mapping alive that has been protected
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    protect = libc.mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for place in (start, start + (pages + 1) * PAGE):
        if protect(place, PAGE, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = (pages + 1) * PAGE - array.nbytes
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy
