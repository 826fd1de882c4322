"""Bad input, one case a kind: what a user is told, word by word."""

import re

import numpy as np
import pytest

import tensorlang as tl

M, N, K = tl.dims("M N K")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def add(x: tl.f32[N], y: tl.f32[N]):
    return tl.tensor(x[i] + y[i] for i in N)


@tl.compute
def take(table: tl.f32[M], ids: tl.i64[N]):
    return tl.tensor(table[ids[i]] for i in N)


@tl.compute
def divide(a: tl.i32[N], b: tl.i32[N]):
    quotient = tl.tensor(a[i] // b[i] for i in N)
    remainder = tl.tensor(a[i] % b[i] for i in N)
    return quotient, remainder


@tl.compute
def ratio(a: tl.f32[N], b: tl.f32[N]):
    return tl.tensor(a[i] / b[i] for i in N)


@tl.compute
def ahead(x: tl.f32[N]):
    return tl.tensor(x[i + 1] for i in N)


@tl.compute
def unbound(x: tl.f32[N]):
    return tl.tensor(x[i] for i in N for _ in M)


@tl.compute
def endless(x: tl.f32[N]):
    return endless(x)


@tl.compute
def iota(*, n: tl.Dim):
    return tl.tensor(tl.cast(i, tl.i64) for i in tl.range(n))


A, B, V = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), np.ones(3, np.float32)
RECORD = np.zeros(3, [("real", "f4")])

CASES = {
    "dtype": (lambda: add(V, V.astype("f8")), TypeError,
        "add: y is declared f32, but an array of f64 is given; convert it: y.astype(np.float32)"),
    "rank": (lambda: matmul(V, B), ValueError, "matmul: A has 1 axis, but [M, K] is declared"),
    "size": (lambda: matmul(A, B.T), ValueError,
        "matmul: axis 0 of B has size 4, but K = 3 is expected (K = 3 by axis 1 of A)"),
    "objects": (lambda: add(V, V.astype(object)), TypeError,
        "add: y: arrays of dtype object are not supported; convert it, for example with"
        " .astype(np.float32)"),
    "records": (lambda: add(V, RECORD), TypeError,
        "add: y: arrays of dtype [('real', '<f4')] are not supported; convert it, for example with"
        " .astype(np.float32)"),
    "complex": (lambda: add(V, 1j * V), TypeError,
        "add: y: arrays of dtype complex64 are not supported; convert it, for example with"
        " .astype(np.float32)"),
    "byte order": (lambda: add(V, V.astype(">f4")), TypeError,
        "add: y: an array of dtype >f4 has the other byte order; convert it with"
        " .astype(np.float32)"),
    "masked": (lambda: add(V, np.ma.array(V)), TypeError,
        "add: y must be an array, f32[N]; found a masked array, whose mask would be lost: pass"
        " y.filled()"),
    "list": (lambda: add(V, [1.0]), TypeError,
        "add: y must be an array, not list; convert it, for example with np.asarray"),
    "None": (lambda: add(V, None), TypeError,
        "add: y must be an array, not NoneType; convert it, for example with np.asarray"),
    "too few": (lambda: add(V), TypeError, "add() misses the argument y"),
    "too many": (lambda: add(V, V, V), TypeError,
        "add() takes 2 positional arguments, but 3 were given"),
    "unknown": (lambda: add(V, z=V), TypeError, "add() has no parameter z"),
    "twice": (lambda: add(V, V, x=V), TypeError, "add() got x twice"),
    "size by name": (lambda: iota(n=-1), ValueError,
        "iota: the size n = -1 is negative"),
    "size of float": (lambda: iota(n=2.5), TypeError,
        "iota: the size n must be an integer, not 2.5"),
    "out overlaps": (lambda: add(V, V.copy(), out=V), ValueError,
        "add: out (add) shares memory with x, which would change while it is in use: pass an array"
        " of its own"),
    "out shape": (lambda: add(V, V, out=np.zeros(4, np.float32)), ValueError,
        "add: out (add) must have shape (3,), f32[N], found (4,)"),
    "out dtype": (lambda: add(V, V, out=np.zeros(3)), TypeError,
        "add: out (add) must hold f32 (np.float32), found float64"),
    "gather": (lambda: take(V, np.array([0, 7])), IndexError,
        "take: index 7 leaves axis 0 of table, which has 3 elements\n"
        "  at FILE: return tl.tensor(table[ids[i]] for i in N)"),
    "gather below": (lambda: take(V, np.array([-1])), IndexError,
        "take: index -1 leaves axis 0 of table, which has 3 elements\n"
        "  at FILE: return tl.tensor(table[ids[i]] for i in N)\n"
        "  negative indices do not count from the end"),
    "leaving": (lambda: ahead(V), tl.DefinitionError,
        "x[i + 1] leaves its tensor: index 0, i + 1, must lie in 0 to N - 1; for N = 1, i = 0 it is"
        " 1, and there is 1 element; shorten the loop, or write tl.where(condition, value, other)"
        " to read less\n  at FILE: return tl.tensor(x[i + 1] for i in N)"),
    "unbound": (lambda: unbound(V), tl.DefinitionError,
        "the size M is not bound in unbound: no parameter's shape has it; add a keyword parameter"
        " `M: tl.Dim` after a `*`, or use x.shape\n"
        "  at FILE: return tl.tensor(x[i] for i in N for _ in M)"),
    "recursion": (lambda: endless(V), tl.DefinitionError,
        "endless calls itself, or what it calls does, more often than Python can: give the"
        " recursion an end that an attribute reaches (n=n - 1)\n"
        "  at FILE: def endless(x: tl.f32[N]):"),
    "unroll": (lambda: tl.schedule(add, N=1_000_000).unroll("i"), tl.ScheduleError,
        "unroll('i') is refused: unrolling i would write out 1000000 statements\n"
        '  at FILE: "unroll": (lambda: tl.schedule(add, N=1_000_000).unroll("i"),'
        " tl.ScheduleError,\n\n"
        "    for i in 1000000:    # <-- here\n        add[i] = x[i] + y[i]\n\n"
        'Try: s.split("i", 8) first, then unroll the inner loop'),
    "loop of another": (lambda: tl.schedule(add).split(tl.schedule(matmul).loops[0], 4),
        tl.ScheduleError,
        "split('i', 4) is refused: i is a loop of another schedule\n"
        '  at FILE: "loop of another": (lambda:'
        " tl.schedule(add).split(tl.schedule(matmul).loops[0], 4),\n\n"
        "Try: a loop of this one: add/i"),
    "steps of another": (lambda: replayed(), tl.ScheduleError,
        "reorder('j', 'i') is refused: there is no loop 'j'\n  at FILE: return s.replay(add)\n\n"
        "Try: one of add/i"),
}  # fmt: skip


def replayed():
    s = tl.schedule(matmul)
    s.reorder("j", "i")
    return s.replay(add)


@pytest.mark.parametrize("kind", CASES)
def test_bad_input_is_explained(kind):
    call, error, text = CASES[kind]
    for _ in range(3):  # the first call and later ones say the same
        with pytest.raises(error) as caught:
            call()
        found = re.sub(r"at \S*test_bad_input\.py:\d+", "at FILE", str(caught.value))
        assert found == text


def test_compiled_functions_refuse_the_same():
    f = tl.compile(add)
    for bad in (V.astype("f8"), V.astype(object), [1.0], None, np.ma.array(V), V[:2], A):
        with pytest.raises((TypeError, ValueError), match=r"^add: (axis 0 of )?y "):
            f(V, bad)


def test_what_is_no_mistake():
    special = np.array([np.nan, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(add(special, V), special + 1)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ratio(V - 1, V - 1), special * np.nan)
        np.testing.assert_array_equal(ratio(V, V - 1), V / (V - 1))
    low = np.iinfo(np.int32).min
    quotient, remainder = divide(np.array([7, -7, low], "i4"), np.array([0, 0, -1], "i4"))
    assert (quotient.tolist(), remainder.tolist()) == ([0, 0, low], [0, 0, 0])
    assert matmul(np.ones((2, 0), "f4"), np.ones((0, 3), "f4")).tolist() == [[0] * 3] * 2
    assert matmul(np.ones((0, 4), "f4"), np.ones((4, 3), "f4")).shape == (0, 3)
    assert take(np.ones(0, "f4"), np.array([], "i8")).shape == (0,)
    assert iota(n=0).shape == (0,)
