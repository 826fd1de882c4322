"""A folder of compiled code, shared by all processes of one user.

Input:  ``store.write(key, header, code)``, then in another process ``store.read(key)``
Output: ``Record(header, code)``, or None if there is none that can be trusted

A record is one file, named by its key, which is a hash of everything that the code depends on: two
processes that write the same record write the same thing. A file appears whole, by renaming, and
its own hash is verified when it is read. Nothing that happens to the folder (full disk, no
permission, files cut short or of somebody else) is an error: code is compiled, and ``problems``
tells ``tensorlang doctor`` why it was not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

MAGIC = b"tensorlang code 1\n"
SUFFIX = ".code"

_DIGEST = hashlib.sha256().digest_size
_LENGTH = struct.Struct("<I")  # bytes of the header
_TOUCH_AFTER = 3600.0  # seconds; a use is recorded at most so often
_PRUNE_TO = 0.8  # of the bound, so that pruning is rare
_PRUNE_EVERY = 64  # records written by one process
_LOCK_SECONDS = 20.0  # then the code is compiled here too: a second copy does no harm


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of one compilation; ``header`` holds plain JSON values."""

    header: Mapping[str, Any]
    code: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the store: bytes on disk, and the time of its last use (to the hour)."""

    path: Path
    bytes: int
    used: float


@dataclass(slots=True)
class Store:
    """The records in ``folder``, at most ``bound`` bytes of them (the least recently used go)."""

    folder: Path
    bound: int
    problems: list[str] = field(default_factory=list[str])
    _written: int = 0

    def read(self, key: str) -> Record | None:
        """Return the record of ``key`` if it is there and whole; a damaged one is removed."""
        path = self._path(key)
        try:
            self._check_owner(path.parent)
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                _check_private(path, status)
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._note(f"cannot read {path}: {error.strerror or error}")
            return None
        try:
            record = unpack(data)
        except ValueError as error:
            self._note(f"removed {path}: {error}")
            with suppress(OSError):
                path.unlink()
            return None
        if time.time() - status.st_mtime > _TOUCH_AFTER:
            with suppress(OSError):
                os.utime(path)
        return record

    def write(self, key: str, header: Mapping[str, Any], code: bytes) -> bool:
        """Keep a record; tells whether it was kept, and notes why not."""
        path = self._path(key)
        data = pack(header, code)
        if len(data) > self.bound:
            self._note(f"not kept: {len(data)} bytes are more than the bound of {self.bound}")
            return False
        temporary = ""
        try:
            self._make(path.parent)
            self._check_owner(path.parent)
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).replace(path)
        except OSError as error:
            if temporary:
                with suppress(OSError):
                    Path(temporary).unlink()
            self._note(f"cannot write to {self.folder}: {error.strerror or error}")
            return False
        if self._written % _PRUNE_EVERY == 0:
            self.prune()
        self._written += 1
        return True

    def remove(self, key: str) -> None:
        """Remove the record of ``key``, if it is there."""
        with suppress(OSError):
            self._path(key).unlink()

    @contextmanager
    def lock(self, key: str) -> Generator[None]:
        """Let one process at a time make the record of ``key``, as far as the system can.

        A process that dies gives its lock up. One that waits in vain for long goes on without: two
        that compile the same thing write the same file.
        """
        folder = self._path(key).parent
        handle = None
        try:
            self._make(folder)
            handle = os.open(folder, os.O_RDONLY)
            _wait_for_lock(handle)
        except (ImportError, OSError):  # no locks here; what cannot be written is noted later
            pass
        try:
            yield
        finally:
            if handle is not None:
                _unlock(handle)

    def entries(self) -> list[Entry]:
        """Return what is there, the least recently used first."""
        found: list[Entry] = []
        for path in self._files(SUFFIX):
            with suppress(OSError):  # removed by another process just now
                status = path.stat()
                found.append(Entry(path, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    def prune(self, bound: int | None = None) -> int:
        """Remove the least recently used records until at most ``bound`` bytes are left.

        Without ``bound``, that of the store decides, and then a fifth more goes. Also removes what
        a process that died left half-written an hour ago. Returns the number of records removed.
        """
        for path in self._files(".part"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _TOUCH_AFTER:
                    path.unlink()
        entries = self.entries()
        total = sum(entry.bytes for entry in entries)
        if total <= (self.bound if bound is None else bound):
            return 0
        target = self.bound * _PRUNE_TO if bound is None else bound
        removed = 0
        for entry in entries:
            if total <= target:
                break
            with suppress(OSError):
                entry.path.unlink()
                removed += 1
            total -= entry.bytes
        return removed

    def peek(self, entry: Entry) -> Record | None:
        """Return what an entry holds, without counting as a use; None if it is damaged."""
        try:
            _check_private(entry.path, entry.path.stat())
            return unpack(entry.path.read_bytes())
        except (OSError, ValueError):
            return None

    def damaged(self) -> list[Entry]:
        """Return the entries that ``read`` would not trust; reads them all."""
        return [e for e in self.entries() if self.peek(e) is None and e.path.exists()]

    def _files(self, suffix: str) -> Iterator[Path]:
        """Yield our own files only: a folder that the user names may hold others."""
        for path in self.folder.glob(f"[0-9a-f][0-9a-f]/*{suffix}"):
            if path.is_file() and not path.is_symlink():
                yield path

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}{SUFFIX}"

    def _make(self, folder: Path) -> None:
        # one by one: ``parents=True`` gives parents the mode that the umask leaves
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)

    def _check_owner(self, folder: Path) -> None:
        _check_private(self.folder, self.folder.stat())
        _check_private(folder, folder.stat())

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def pack(header: Mapping[str, Any], code: bytes) -> bytes:
    """Return a record as bytes that tell whether they are whole.

    >>> unpack(pack({"entry": "f"}, b"code"))
    Record(header={'entry': 'f'}, code=b'code')
    """
    text = json.dumps(header, separators=(",", ":")).encode()
    body = _LENGTH.pack(len(text)) + text + code
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Record:
    """Return the record in ``data``; raises ValueError if it is not whole or not a record."""
    start = len(MAGIC) + _DIGEST
    if not data.startswith(MAGIC) or len(data) < start + _LENGTH.size:
        raise ValueError("it is not a record of compiled code")
    body = data[start:]
    if hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        raise ValueError("it was damaged: its content does not have the hash that it should")
    [length] = _LENGTH.unpack_from(body)
    header, code = body[_LENGTH.size :][:length], body[_LENGTH.size + length :]
    return Record(cast("dict[str, Any]", json.loads(header)), code)


def _check_private(path: Path, status: os.stat_result) -> None:
    """Raise PermissionError for what another user could have written: it holds code that runs."""
    if not hasattr(os, "getuid"):
        return
    if status.st_uid not in (os.getuid(), 0):
        raise PermissionError(0, f"{path} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(0, f"{path} can be written by others; chmod go-w {path}")


def _wait_for_lock(handle: int) -> None:
    import fcntl  # not on Windows

    deadline = time.monotonic() + _LOCK_SECONDS
    pause = 0.002
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        else:
            return


def _unlock(handle: int) -> None:
    """Give the lock up, also where a child that was forked meanwhile holds the folder open."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
