"""Arrays that begin where a cache line does.

Input:  an array anywhere      Output: the same, or a copy in C order at a multiple of 64 bytes
"""

from __future__ import annotations

import numpy as np

from tensorlang.runtime.arrays import Array, address_of

LINE = 64


def aligned(array: Array) -> Array:
    """Return ``array`` if it begins at a cache line, else a read-only copy that does.

    >>> aligned(np.zeros(100, np.float32)[1:]).ctypes.data % 64
    0
    """
    if array.flags.c_contiguous and address_of(array) % LINE == 0:
        return array
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -address_of(memory) % LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = False
    return copy
