"""What the battery runs: schedules whose results are known from NumPy, and steps to be refused.

Each case is an operator, a schedule and some sizes. ``refused`` names those whose last step must be
refused where nothing is wrong: with a mistake that lets it through, something else must notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorlang as tl
from tests.fuzz.memory import fenced

M, N, K = tl.dims("M N K")
Arrays = list[Any]


@tl.compute
def double(x: tl.f32[N]):
    return tl.tensor(x[i] * 2 for i in N)


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def blur(x: tl.f32[N + 2]):
    h = tl.tensor(x[i] * 3 for i in N + 2)
    return tl.tensor(h[i] + h[i + 1] + h[i + 2] for i in N)


@tl.compute
def centred(x: tl.f32[N]):
    h = tl.tensor(x[i] * 3 for i in N)
    flipped = tl.tensor(h[N - 1 - i] for i in N)
    return tl.tensor(h[i] - flipped[i] for i in N)


@tl.compute
def running(x: tl.f32[M, N]):
    return tl.tensor(tl.scan(lambda a, b: a + b, 0, (x[i, j] for j in N)) for i in M)


@tl.compute
def turned(x: tl.f32[M, N]):
    h = tl.tensor(x[i, j] + 1 for i in M for j in N)
    return tl.tensor(h[j, i] * 2 for i in N for j in M)


@tl.compute
def table(x: tl.f32[N, 4]):
    return tl.tensor(x[i, j] * 2 for i in N for j in tl.range(4))


@tl.compute
def halves(x: tl.f32[N]):
    return tl.tensor(x[i // 2] + x[i] for i in N)


@tl.compute
def divided(a: tl.i32[N], b: tl.i32[N]):
    return tl.tensor(a[i] // b[i] for i in N)


@tl.compute
def largest(x: tl.f32[M, N]):
    return tl.tensor(tl.max(x[i, j] for j in N) for i in M)


@tl.compute
def shifted(x: tl.f32[N]):
    return tl.tensor(tl.where(i > 0, x[i - 1], 0) for i in N)


@tl.compute
def picked(x: tl.f32[M], ids: tl.i64[N]):
    return tl.tensor(x[ids[i]] for i in N)


@tl.compute
def odd(x: tl.f32[2 * N + 1]):
    return tl.tensor(x[2 * i] + x[2 * i + 1] for i in N)


@dataclass(frozen=True)
class Case:
    """A schedule, arguments to call it with, and what NumPy makes of them (or raises)."""

    schedule: Callable[[], tl.Schedule]
    arguments: tuple[Arrays, ...]
    expected: Callable[..., Any]
    refused: bool = False


def whole(*shape: int, dtype: str = "f4") -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return fenced((np.arange(count) * 7 % 11 - 4).astype(dtype).reshape(shape))


def _tail() -> tl.Schedule:
    s = tl.schedule(double)
    s.split("i", 4)
    return s


def _tiled() -> tl.Schedule:
    s = tl.schedule(matmul)
    i, j, k = s.loops
    io, ii = s.split(i, 2)
    jo, ji = s.split(j, 4)
    s.reorder(io, jo, k, ii, ji)
    s.unroll(ii)
    s.vectorize(ji)
    return s


def _copied() -> tl.Schedule:
    s = tl.schedule(matmul)
    io, _ = s.split("i", 4)
    s.cache_read("A", at=io)
    return s


def _placed() -> tl.Schedule:
    s = tl.schedule(blur)
    outer, _ = s.split("blur/i", 4)
    s.compute_at("h", outer)
    return s


def _taken_along() -> tl.Schedule:
    s = tl.schedule(blur)
    s.vectorize(s.split("h/i", 8)[1])
    outer, _ = s.split("blur/i", 12)
    s.compute_at("h", outer)
    return s


def _read_twice() -> tl.Schedule:
    s = tl.schedule(centred)
    outer, _ = s.split("centred/i", 4)
    s.compute_at("h", outer)
    return s


def _parallel_reduction() -> tl.Schedule:
    s = tl.schedule(matmul)
    s.parallel("k")
    return s


def _vectorized_scan() -> tl.Schedule:
    s = tl.schedule(running)
    _, inner = s.split("j", 4)
    s.vectorize(inner)
    return s


def _reordered_scan() -> tl.Schedule:
    s = tl.schedule(running)
    outer, inner = s.split("j", 4)
    s.reorder(inner, outer)
    return s


def _accumulated() -> tl.Schedule:
    s = tl.schedule(matmul)
    i, j, k = s.loops
    ko, ki = s.split(k, 4)
    jo, ji = s.split(j, 4)
    s.reorder(ko, jo, i, ki, ji)
    s.cache_write("matmul", at=jo, scope="global")
    return s


def _factored() -> tl.Schedule:
    s = tl.schedule(matmul)
    _, inner = s.split("k", 4)
    s.rfactor(inner)
    return s


def _inlined() -> tl.Schedule:
    s = tl.schedule(turned)
    s.compute_inline("h")
    return s


def _fused() -> tl.Schedule:
    s = tl.schedule(table)
    s.fuse("i", "j")
    return s


def _fused_pieces() -> tl.Schedule:
    s = tl.schedule(turned)
    fused = s.fuse("turned/i", "turned/j")
    s.split(fused, 4)
    return s


def _peeled() -> tl.Schedule:
    s = tl.schedule(double)
    outer, _ = s.split("i", 4)
    s.peel(outer)
    return s


def _colliding_layout() -> tl.Schedule:
    s = tl.schedule(turned)
    s.layout("h", lambda i, j: (i, j // 2))
    return s


def _decomposed_late() -> tl.Schedule:
    s = tl.schedule(matmul)
    _, inner = s.split("k", 4)
    s.decompose_reduction("matmul", inner)
    return s


def _vector_tail() -> tl.Schedule:
    s = tl.schedule(double)
    _, inner = s.split("i", 8)
    s.vectorize(inner)
    return s


def _peel_tail() -> tl.Schedule:
    s = tl.schedule(double)
    s.split("i", 4, tail="peel")
    return s


def _masked() -> tl.Schedule:
    s = tl.schedule(double)
    _, inner = s.split("i", 8, tail="mask")
    s.vectorize(inner)
    return s


def _halves() -> tl.Schedule:
    s = tl.schedule(halves)
    _, inner = s.split("i", 8)
    s.vectorize(inner)
    return s


def _parallel() -> tl.Schedule:
    s = tl.schedule(matmul)
    s.parallel("i")
    return s


def _lazy() -> tl.Schedule:
    s = tl.schedule(shifted)
    _, inner = s.split("i", 8)
    s.vectorize(inner)
    return s


def _shifted_block() -> tl.Schedule:
    s = tl.schedule(double)
    _, inner = s.split("i", 4, tail="shift")
    s.vectorize(inner)
    return s


def _sliding() -> tl.Schedule:
    s = tl.schedule(blur)
    s.reverse_compute_at("blur", "h/i")
    return s


def _folded() -> tl.Schedule:
    s = _sliding()
    s.storage_fold("h", 0, 3)
    return s


def _folded_too_far() -> tl.Schedule:
    s = _sliding()
    s.storage_fold("h", 0, 2)
    return s


def _padded_rows() -> tl.Schedule:
    s = tl.schedule(turned)
    s.pad_storage("h", 1, 3)
    return s


def _swizzled() -> tl.Schedule:
    s = tl.schedule(turned)
    s.swizzle("h", 1, 2)
    return s


def _inlined_backwards() -> tl.Schedule:
    s = tl.schedule(turned)
    s.split("h/j", 4)
    s.reverse_compute_inline("turned")
    return s


def _streamed() -> tl.Schedule:
    s = tl.schedule(double)
    _, inner = s.split("i", 8)
    s.vectorize(inner)
    s.stream("double")
    return s


def _prefetched() -> tl.Schedule:
    s = tl.schedule(matmul)
    s.cache_read("B", at="i")
    s.prefetch("A", at="k", ahead=100)
    return s


def _exact() -> tl.Schedule:
    s = tl.schedule(double)
    s.split("i", 4, tail="exact")
    return s


def _doubled(x: Any) -> Any:
    return x * 2


def _blurred(x: Any) -> Any:
    h = x * 3
    return h[:-2] + h[1:-1] + h[2:]


def _floored(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return a // b


def _raises(error: type[Exception]) -> Callable[..., Any]:
    def expected(*arguments: Any) -> Any:
        raise error

    return expected


VECTORS: tuple[Arrays, ...] = tuple([whole(n)] for n in (0, 1, 3, 5, 8, 13, 1024))
MATRICES: tuple[Arrays, ...] = tuple(
    [whole(m, k), whole(k, n)]
    for m, k, n in ((1, 1, 1), (3, 5, 7), (5, 6, 5), (4, 0, 3), (8, 8, 8))
)
TABLES: tuple[Arrays, ...] = tuple([whole(m, n)] for m, n in ((1, 1), (3, 5), (4, 8), (5, 13)))
SPECIAL = np.array([[1, np.nan, 3], [np.nan, 1, 2], [1, 2, np.nan], [1, 2, 3]], "f4")

CASES: dict[str, Case] = {
    "tail": Case(_tail, VECTORS, _doubled),
    "tiled": Case(_tiled, MATRICES, np.matmul),
    "copied": Case(_copied, MATRICES, np.matmul),
    "taken along": Case(_taken_along, tuple([whole(n)] for n in (2, 7, 14, 30)), _blurred),
    "placed": Case(_placed, tuple([whole(n)] for n in (2, 3, 7, 10)), _blurred),
    "read twice": Case(_read_twice, VECTORS, lambda x: x * 3 - x[::-1] * 3, refused=True),
    "parallel reduction": Case(_parallel_reduction, MATRICES, np.matmul, refused=True),
    "vectorized scan": Case(_vectorized_scan, TABLES, lambda x: np.cumsum(x, 1), refused=True),
    "reordered scan": Case(_reordered_scan, TABLES, lambda x: np.cumsum(x, 1), refused=True),
    "accumulated": Case(_accumulated, MATRICES, np.matmul),
    "factored": Case(_factored, MATRICES, np.matmul),
    "inlined": Case(_inlined, TABLES, lambda x: (x + 1).T * 2),
    "fused": Case(_fused, tuple([whole(n, 4)] for n in (0, 1, 5)), _doubled),
    "fused pieces": Case(_fused_pieces, TABLES, lambda x: (x + 1).T * 2),
    "peeled": Case(_peeled, VECTORS, _doubled),
    "colliding layout": Case(_colliding_layout, TABLES, lambda x: (x + 1).T * 2, refused=True),
    "decomposed late": Case(_decomposed_late, MATRICES, np.matmul, refused=True),
    "vector tail": Case(_vector_tail, VECTORS, _doubled),
    "peel tail": Case(_peel_tail, VECTORS, _doubled),
    "masked": Case(_masked, VECTORS, _doubled),
    "halves": Case(_halves, VECTORS, lambda x: x[np.arange(len(x)) // 2] + x),
    "division": Case(
        lambda: tl.schedule(divided),
        ([whole(13, dtype="i4"), whole(13, dtype="i4")[::-1].copy()],),
        _floored,
    ),
    "largest": Case(
        lambda: tl.schedule(largest), ([fenced(SPECIAL)], [whole(3, 5)]), lambda x: x.max(1)
    ),
    "shifted block": Case(_shifted_block, VECTORS, _doubled),
    "sliding": Case(_sliding, tuple([whole(n)] for n in (2, 3, 7, 10)), _blurred),
    "folded": Case(_folded, tuple([whole(n)] for n in (2, 3, 7, 10)), _blurred),
    "folded too far": Case(
        _folded_too_far, tuple([whole(n)] for n in (2, 3, 7, 10)), _blurred, refused=True
    ),
    "padded rows": Case(_padded_rows, TABLES, lambda x: (x + 1).T * 2),
    "swizzled": Case(_swizzled, TABLES, lambda x: (x + 1).T * 2),
    "inlined backwards": Case(_inlined_backwards, TABLES, lambda x: (x + 1).T * 2),
    "streamed": Case(_streamed, (*VECTORS, [whole(41)[1:]], [whole(43)[3:]]), _doubled),
    "prefetched": Case(_prefetched, MATRICES, np.matmul),
    "parallel": Case(_parallel, MATRICES, np.matmul),
    "lazy": Case(_lazy, VECTORS, lambda x: np.concatenate([x[:0], [0] * len(x[:1]), x[:-1]])),
    "strided": Case(lambda: tl.schedule(double), ([whole(12)[::2]], [whole(12)[::-1]]), _doubled),
    "gather": Case(
        lambda: tl.schedule(picked),
        ([whole(3), np.array([0, 2, 3])], [whole(3), np.array([0, -1])]),
        _raises(IndexError),
    ),
    "derived size": Case(
        lambda: tl.schedule(odd),
        tuple([whole(n)] for n in (1, 3, 9)),
        lambda x: x[:-1:2] + x[1::2],
    ),
    "exact": Case(_exact, ([whole(5)], [whole(13)]), _raises(ValueError)),
}
