"""Arrays of more than 2**32 elements, once: ``python -m tests.large`` (12 GB of free memory).

Not part of the test-suite. Elements before and behind each power of two from 2**30 on, where an
index of 32 bits would wrap, are compared with NumPy; row sums are compared completely.
"""

import numpy as np

import tensorlang as tl

M, N = tl.dims("M N")
ROWS, COLUMNS = 70_000, 75_000


@tl.compute
def shifted(x: tl.u8[M, N], row: tl.u8[N]):
    """Add a row to each row."""
    return tl.tensor(x[i, j] + row[j] for i in M for j in N)


@tl.compute
def row_sums(x: tl.u8[M, N]):
    """Add up each row."""
    return tl.tensor(tl.sum(tl.cast(x[i, j], tl.i64) for j in N) for i in M)


@tl.compute
def flat(x: tl.u8[N]):
    """Add one to a vector."""
    return tl.tensor(x[i] + tl.cast(1, tl.u8) for i in N)


def main() -> None:
    """Run the operators on 5.25 GB, and say so."""
    x = np.empty((ROWS, COLUMNS), np.uint8)
    x[:] = np.arange(COLUMNS, dtype=np.uint64) % 200
    x += (np.arange(ROWS, dtype=np.uint64) % 7).astype(np.uint8)[:, None]
    row = (np.arange(COLUMNS) % 3).astype(np.uint8)
    sums = x.sum(axis=1, dtype=np.int64)
    np.testing.assert_array_equal(row_sums(x), sums)
    np.testing.assert_array_equal(row_sums(x[:, ::-1]), sums)
    print(f"sums of {x.size:,} elements agree")
    result = shifted(x, row)
    places = [0, x.size - 1, *[2**bits + step for bits in (30, 31, 32) for step in (-1, 0, 1)]]
    for place in places:
        i, j = divmod(place, COLUMNS)
        assert result[i, j] == x[i, j] + row[j], place
    np.testing.assert_array_equal(result.sum(axis=1, dtype=np.int64), sums + row.sum(dtype=int))
    print(f"{result.nbytes:,} bytes of results agree")
    assert flat(x.reshape(-1), out=result.reshape(-1)) is not None
    np.testing.assert_array_equal(result.sum(axis=1, dtype=np.int64), sums + COLUMNS)
    print("a vector of as many elements agrees")


if __name__ == "__main__":
    main()
