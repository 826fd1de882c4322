"""The store of compiled code: nothing that happens to its folder is an error or a wrong record."""

import errno
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.config import cache_folder
from tensorlang.runtime.store import MAGIC, Record, Store, pack, unpack

KEY = "ab" + "0" * 62


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "code", 1 << 20)


def key(number):
    return f"{number:02x}".ljust(64, "0")


def test_what_is_written_is_read(store):
    assert store.read(KEY) is None
    assert store.write(KEY, {"entry": "f", "strides": ["A.stride0"]}, b"\x7fELF")
    again = Store(store.folder, store.bound)
    assert again.read(KEY) == Record({"entry": "f", "strides": ["A.stride0"]}, b"\x7fELF")
    assert store.problems == again.problems == []
    assert [entry.path.name for entry in store.entries()] == [f"{KEY}.code"]


@given(st.binary(max_size=200), st.data())
def test_any_damage_is_noticed(code, data):
    whole = pack({"entry": "f"}, code)
    place = data.draw(st.integers(0, len(whole) - 1))
    change = data.draw(st.integers(1, 255))
    damaged = whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :]
    for wrong in (damaged, whole[:place], whole + b"x"):
        with pytest.raises(ValueError, match=r"damaged|not a record"):
            unpack(wrong)


@pytest.mark.parametrize("content", [b"", b"hello", MAGIC, MAGIC + b"x" * 100])
def test_foreign_and_damaged_files_are_removed_and_noted(store, content):
    store.write(KEY, {}, b"code")
    path = store.entries()[0].path
    path.write_bytes(content)
    assert len(store.damaged()) == 1
    assert store.read(KEY) is None
    assert not path.exists()
    assert store.problems[0].startswith(f"removed {path}: it ")
    assert store.write(KEY, {}, b"code")
    assert store.read(KEY) is not None


def test_what_others_can_write_is_not_trusted(store):
    store.write(KEY, {}, b"code")
    path = store.entries()[0].path
    path.chmod(0o666)
    assert store.read(KEY) is None
    assert "can be written by others; chmod go-w" in store.problems[0]
    path.chmod(0o600)
    assert store.read(KEY) is not None
    store.folder.chmod(0o777)
    assert store.read(KEY) is None
    assert not store.write(key(1), {}, b"code")


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_what_it_makes_itself_is_trusted_whatever_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        store = Store(tmp_path / "a" / "code", 1 << 20)
        with store.lock(KEY):
            assert store.write(KEY, {}, b"code")
        assert store.read(KEY) is not None
    finally:
        os.umask(before)
    assert store.problems == []


def test_without_a_home_nothing_is_kept(monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: Path("~/.cache"))
    assert cache_folder("auto") is None
    assert cache_folder("off") is None
    assert cache_folder("/x/y") == Path("/x/y")


def test_a_full_disk_is_noted_and_leaves_nothing(store, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.replace", full)
    assert not store.write(KEY, {}, b"code")
    assert store.problems == [f"cannot write to {store.folder}: No space left on device"]
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []


def test_a_folder_that_cannot_be_made_is_noted(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "code", 1 << 20)
    with store.lock(KEY):
        assert store.read(KEY) is None
        assert not store.write(KEY, {}, b"code")
    assert "Not a directory" in store.problems[-1]
    assert store.entries() == []


def test_the_least_recently_used_goes_first(store):
    for number in range(10):
        store.write(key(number), {}, b"x" * 1000)
        os.utime(store.folder / key(number)[:2] / f"{key(number)}.code", (number, number))
    assert store.read(key(0)) is not None  # a use: it is the youngest now
    size = store.entries()[0].bytes
    assert store.prune(3 * size) == 7
    left = {entry.path.stem for entry in store.entries()}
    assert left == {key(0), key(8), key(9)}
    assert store.prune(0) == 3


def test_writing_keeps_the_bound(tmp_path):
    for number in range(8):
        Store(tmp_path, 5000).write(key(number), {}, b"x" * 1000)  # each a process of its own
    total = sum(entry.bytes for entry in Store(tmp_path, 5000).entries())
    assert total <= 5000
    assert not Store(tmp_path, 5000).write(key(9), {}, b"x" * 6000)


def test_files_of_others_in_the_folder_stay(store):
    store.write(KEY, {}, b"code")
    letter = store.folder / "letter.txt"
    letter.write_text("mine")
    part = store.folder / KEY[:2] / ".x.part"
    part.write_text("half")
    os.utime(part, (0, time.time() - 7200))
    store.prune(0)
    assert letter.read_text() == "mine"
    assert not part.exists()
    assert store.entries() == []


def test_one_at_a_time_holds_the_lock(store):
    inside, most = 0, 0
    guard = threading.Lock()

    def work():
        nonlocal inside, most
        with Store(store.folder, 1).lock(KEY):
            with guard:
                inside += 1
                most = max(most, inside)
            time.sleep(0.01)
            with guard:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_lock_that_is_never_given_up_is_waited_for_in_vain(store, monkeypatch):
    monkeypatch.setattr("tensorlang.runtime.store._LOCK_SECONDS", 0.05)
    with store.lock(KEY), Store(store.folder, 1).lock(KEY):
        pass  # got here: the second went on without
