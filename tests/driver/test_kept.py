"""Code from the store is the code that was compiled: same results, errors and texts."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.driver import kept, keys, pipeline
from tensorlang.driver.keys import Origin, key_of
from tensorlang.runtime.store import Store
from tests.mutation.mutate import Mutation, applied

ROOT = Path(__file__).parents[2]
M, N, K = tl.dims("M N K")


@tl.compute
def gather(table: tl.f32[M], at: tl.i64[N], alpha: tl.f32):
    return tl.tensor(table[at[i]] * alpha for i in N)


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@pytest.fixture
def store(tmp_path, monkeypatch):
    store = Store(tmp_path / "code", 1 << 30)
    monkeypatch.setattr(kept, "the_store", lambda: store)
    return store


def by_hand(factor=8):
    s = tl.schedule(matmul)
    i, j, _ = s.loops
    s.parallel(i)
    s.vectorize(s.split(j, factor)[1])
    return s


def is_kept(function):
    return all("from the cache" in version.phases for version in function.report.versions)


def forbid(monkeypatch):
    def never(*_, **__):
        raise AssertionError("compiled, though it is kept")

    monkeypatch.setattr(pipeline, "build_kernel", never)
    monkeypatch.setattr(tl.Schedule, "default", never)
    monkeypatch.setattr(tl.Schedule, "verify", never)


@pytest.mark.parametrize("make", [lambda: matmul, by_hand])
def test_a_hit_computes_the_same_and_skips_everything(store, monkeypatch, make):
    generator = np.random.default_rng(1)
    A = generator.standard_normal((37, 20), np.float32)
    B = generator.standard_normal((20, 51), np.float32)
    first = tl.compile(make())
    views = [(A, B), (A[::2], B[:, ::3]), (A[:0], B)]
    expected = [first(*view) for view in views]
    assert not is_kept(first)
    forbid(monkeypatch)
    again = tl.compile(make())
    for view, result in zip(views, expected, strict=True):
        np.testing.assert_array_equal(again(*view), result)
    assert is_kept(again)
    assert str(again.report.proof) == str(first.report.proof)
    assert store.problems == []


def test_the_texts_of_a_kept_kernel_are_made_when_asked_for(store):
    first, again = tl.compile(by_hand()), tl.compile(by_hand())
    assert is_kept(again)
    for kind in ("schedule", "loops", "llvm", "asm"):
        assert first.source(kind) == again.source(kind)


MOVED = """\
import tensorlang as tl
M, N = tl.dims('M N')
@tl.compute
def pick(t: tl.f32[M], at: tl.i64[N]):
    return tl.tensor(t[at[i]] for i in N)
"""


def test_a_failed_check_tells_the_line_on_which_the_operator_stands_now(store):
    table, at = np.ones(3, np.float32), np.array([0, 5])
    for blank in (0, 3):
        names = {}
        exec(compile("\n" * blank + MOVED, "moved.py", "exec"), names)
        function = tl.compile(names["pick"])
        with pytest.raises(IndexError) as caught:
            function(table, at)
        assert f"moved.py:{5 + blank}" in str(caught.value)
    assert is_kept(function)


def test_scalars_survive(store):
    arguments = np.arange(3, dtype=np.float32), np.array([2, 0]), 1.5
    assert tl.compile(gather)(*arguments).tolist() == [3.0, 0.0]
    again = tl.compile(gather)
    assert again(*arguments).tolist() == [3.0, 0.0]
    assert is_kept(again)


def variants():
    yield lambda: tl.compile(matmul)
    yield lambda: tl.compile(matmul, M=8)
    yield lambda: tl.compile(matmul, opt_level=1)
    yield lambda: tl.compile(matmul, fast_math=True)
    yield lambda: tl.compile(matmul, "cpu -mcpu=x86-64-v3")
    yield lambda: tl.compile(by_hand(4))
    yield lambda: tl.compile(by_hand(8))
    yield lambda: tl.compile(tl.schedule(matmul))
    yield lambda: tl.compile(gather)
    yield lambda: tl.compile(gather, check_bounds=False)


def test_whatever_changes_the_code_changes_the_key(store):
    for make in variants():
        assert not is_kept(make())
    for make in variants():
        assert is_kept(make())


def test_versions_and_the_program_as_it_stands_are_part_of_the_key(monkeypatch):
    origin = Origin(matmul.definition(), ())
    key = key_of("kernel", origin, "fingerprint")
    assert key == key_of("kernel", origin, "fingerprint")
    assert key != key_of("kernel", origin, "another processor")
    assert key != key_of("kernel", Origin(matmul.definition(), (), "other loops"), "fingerprint")
    monkeypatch.setattr(keys, "package_fingerprint", lambda: "another version")
    assert key != key_of("kernel", origin, "fingerprint")


def test_damaged_code_is_compiled_again(store):
    tl.compile(matmul)
    for entry in store.entries():
        entry.path.write_bytes(entry.path.read_bytes()[:-7])
    assert not is_kept(tl.compile(matmul))
    assert is_kept(tl.compile(matmul))
    assert "damaged" in store.problems[0]


def test_code_of_another_format_is_compiled_again(store):
    tl.compile(matmul)
    [entry] = store.entries()
    store.write(entry.path.stem, {"artefact": {}}, b"no object file")
    A = np.ones((2, 2), np.float32)
    function = tl.compile(matmul)
    assert (function(A, A) == 2).all()
    assert not is_kept(function)


def test_mistakes_made_on_purpose_are_neither_kept_nor_hidden(store):
    mistake = Mutation(
        "one lane too few", "tensorlang.driver.kept:_describe", "known = len", "known = 1 + len", ()
    )
    with applied(mistake):
        assert not is_kept(tl.compile(matmul))
    assert store.entries() == []
    tl.compile(matmul)
    with applied(mistake):
        assert not is_kept(tl.compile(matmul))


def test_graphs_are_kept_node_by_node(store, monkeypatch):
    @tl.graph
    def layer(x: tl.f32[M, K], w: tl.f32[K, N]):
        return tl.nn.softmax(x @ w)

    x, w = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    expected = tl.compile(layer)(x, w)
    forbid(monkeypatch)
    np.testing.assert_array_equal(tl.compile(layer)(x, w), expected)


def test_a_failed_proof_is_not_kept(store, monkeypatch):
    def refuse(self):
        raise tl.ScheduleError("no")

    with monkeypatch.context() as patch:
        patch.setattr(tl.Schedule, "verify", refuse)
        with pytest.raises(tl.ScheduleError):
            tl.compile(by_hand())
    assert store.entries() == []
    assert "proved" in str(tl.compile(by_hand()).report)


PROGRAM = """
import numpy as np, tensorlang as tl
N = tl.dim("N")
@tl.compute
def double(x: tl.f32[N]):
    return tl.tensor(x[i] * 2 for i in N)
assert (double(np.ones(9, np.float32)) == 2).all()
"""


def run(folder, count=1):
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "TENSORLANG_CACHE": folder}
    processes = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stderr=subprocess.PIPE)
        for _ in range(count)
    ]
    return [(process.communicate()[1].decode(), process.returncode) for process in processes]


def test_processes_share_one_artefact(tmp_path):
    assert run(str(tmp_path), 4) == [("", 0)] * 4
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("folder", ["off", "/proc/nowhere", "/dev/null"])
def test_without_a_folder_everything_works(folder):
    assert run(folder) == [("", 0)]
