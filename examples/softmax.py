"""Softmax by rows: four stages, made row by row so that a row stays in the level-1 cache.

Run it as ``python examples/softmax.py [ROWS COLUMNS]``.
"""

import sys

import numpy as np

import tensorlang as tl
from tensorlang.cli.measure import interleave

M, N = tl.dims("M N")


@tl.compute
def softmax(X: tl.f32[M, N]):
    """Return exp(X) with each row divided by its sum, without overflow."""
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


def by_rows() -> tl.Schedule:
    """Return a schedule that runs all stages for one row before it goes on to the next."""
    s = tl.schedule(softmax)
    row, column = s.loops
    for stage in ("total", "e", "top"):
        s.compute_at(stage, row)
    s.parallel(row)
    for loop in (column, s["e"].loops[-1]):
        _, lane = s.split(loop, 16)
        s.vectorize(lane)
    for stage in ("top", "total"):  # sixteen partial results at once, combined at the end
        _, lane = s.split(s[stage].loops[-1], 16)
        partial = s.rfactor(lane)
        s.vectorize(partial.loops[-1])
    return s


def main(rows: int = 4096, columns: int = 1024) -> None:
    """Check both schedules against NumPy and print their times."""
    X = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)

    def with_numpy() -> np.ndarray:
        e = np.exp(X - X.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    expected = with_numpy()
    out = np.empty_like(X)
    programs = {"NumPy": with_numpy}
    for name, source in (("default schedule", softmax), ("by rows", by_rows())):
        compiled = tl.compile(source)
        np.testing.assert_allclose(compiled(X), expected, rtol=1e-5, atol=1e-7)
        programs[name] = lambda compiled=compiled: compiled(X, out=out)
    print(by_rows(), end="\n\n")
    for name, timing in interleave(programs, rounds=11).items():
        print(f"{name:20} {timing.median * 1e3:8.2f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
