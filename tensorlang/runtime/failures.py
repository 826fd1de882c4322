"""What a kernel's return code means to the caller.

Input:  code 1, status (site 0, index 7, extent 5)
Output: ``IndexError: lookup: index 7 leaves axis 0 of table, which has 5 elements``
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping

from tensorlang.ir.affine import Var
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.runtime.kernel import OUT_OF_BOUNDS, OUT_OF_MEMORY, KernelFace, Status
from tensorlang.runtime.sizes import format_sizes


def failure(
    program: LoweredProgram | KernelFace,
    code: int,
    status: Status | None,
    sizes: Mapping[Var, int],
) -> Exception:
    """Return the exception for a code other than 0."""
    if code == OUT_OF_BOUNDS and status is not None:
        return _index_error(program, status)
    if code == OUT_OF_MEMORY:
        return MemoryError(
            f"{program.name}: no memory for a temporary array, with {format_sizes(sizes)}"
        )
    return RuntimeError(f"{program.name}: the kernel returned the unknown code {code}")


def _index_error(program: LoweredProgram | KernelFace, status: Status) -> IndexError:
    if not 0 <= status.site < len(program.check_sites):
        return IndexError(f"{program.name}: index {status.index} is out of range")
    site = program.check_sites[status.site]
    elements = "1 element" if status.extent == 1 else f"{status.extent} elements"
    lines = [
        f"{program.name}: index {status.index} leaves axis {site.axis} of {site.tensor},"
        f" which has {elements}"
    ]
    if site.location:
        file, _, line = site.location.rpartition(":")
        text = linecache.getline(file, int(line)).strip() if line.isdecimal() else ""
        lines.append(f"  at {site.location}" + (f": {text}" if text else ""))
    if status.index < 0:
        lines.append("  negative indices do not count from the end")
    return IndexError("\n".join(lines))
