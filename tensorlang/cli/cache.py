"""``tensorlang cache``: what compiled code is kept on disk, and how to be rid of it.

Input:  ``tensorlang cache prune --keep 100M``
Output: the least recently used code removed, until 100 MiB are left
"""

from __future__ import annotations

import time

from tensorlang.cli.console import make_display
from tensorlang.config import read_bytes
from tensorlang.runtime.cache import the_store
from tensorlang.runtime.store import Entry, Store

_LISTED = 20


def show() -> int:
    """Print the folder, how full it is, and what was used last."""
    display = make_display()
    store = the_store()
    if store is None:
        display.text("Compiled code is not kept: TENSORLANG_CACHE=off, or there is no home folder.")
        return 0
    entries = store.entries()
    total = sum(entry.bytes for entry in entries)
    display.text(f"{store.folder}: {len(entries)} entries, {format_bytes(total)}")
    display.text(f"at most {format_bytes(store.bound)} are kept (TENSORLANG_CACHE_SIZE)")
    damaged = store.damaged()
    if damaged:
        display.text(f"{len(damaged)} are damaged or of others; `tensorlang cache clear` helps")
    if entries:
        display.table(
            "used last",
            ("code", "bytes", "used"),
            [_row(store, entry) for entry in reversed(entries[-_LISTED:])],
        )
    return 0


def prune(keep: str | None) -> int:
    """Remove the least recently used code until at most ``keep`` is left."""
    display = make_display()
    store = the_store()
    if store is None:
        display.text("Compiled code is not kept.")
        return 0
    bound = store.bound if keep is None else read_bytes(keep)
    display.text(f"removed {store.prune(bound)} entries from {store.folder}")
    return 0


def clear() -> int:
    """Remove all compiled code; nothing else that may lie in the folder."""
    return prune("0")


def _row(store: Store, entry: Entry) -> tuple[str, str, str]:
    record = store.peek(entry)
    if record is None:
        what = "(damaged)"
    elif "evidence" in record.header:
        what = f"proof of {record.header.get('name', '?')}"
    else:
        what = str(record.header.get("name", "?"))
    return what, str(entry.bytes), time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))


def format_bytes(count: int) -> str:
    """Return ``12.5 MiB``.

    >>> format_bytes(1536)
    '1.5 KiB'
    """
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"
