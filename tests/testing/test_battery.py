import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings

import tensorlang as tl
import tensorlang.testing as tlt

M, N, K = tl.dims("M N K")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def softmax(X: tl.f32[M, N]):
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


SLOW = settings(
    max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@SLOW
@given(tlt.schedules(matmul), tlt.arguments(matmul))
def test_any_schedule_agrees(s, args):
    tlt.assert_close(tl.compile(s)(*args), matmul.reference(*args), terms=20)


@SLOW
@given(tlt.schedules(softmax))
def test_drawn_schedules_are_proved_and_rebuild(s):
    if s.trace:
        assert s.verify().ok
    again = tl.schedule(softmax)
    exec(s.to_python().replace("tl.schedule(softmax)", "again"), {"again": again, "tl": tl,
                                                                 "softmax": softmax})  # fmt: skip
    assert str(s).splitlines()[0] == str(again).splitlines()[0]


@pytest.mark.parametrize("step", ["split", "reorder", "vectorize", "parallel", "cache_write"])
def test_each_kind_of_step_is_drawn(step):
    strategy = tlt.schedules(matmul, steps=("split", step), max_steps=4)
    options = settings(max_examples=300, deadline=None, database=None)
    s = find(strategy, lambda s: any(taken.name == step for taken in s.trace), settings=options)
    assert any(taken.name == step for taken in s.trace)


def test_unknown_steps_are_refused():
    with pytest.raises(ValueError, match=r"^no random steps jump; there are split, tile, fuse"):
        tlt.schedules(matmul, steps=("jump",))


def test_every_primitive_that_holds_for_all_sizes_is_drawn():
    from tensorlang.schedule.schedule import STEPS
    from tensorlang.testing.random_schedules import STEPS as RANDOM

    # these restrict the sizes, change nothing, or are for other targets
    assert set(STEPS) - set(RANDOM) == {"assume", "annotate", "bind"}


def test_check_passes_what_is_right():
    tlt.check(matmul, against=np.matmul, examples=6)


def test_check_finds_a_definition_that_means_something_else():
    with pytest.raises(AssertionError, match=r"elements (is|are) not close"):
        tlt.check(matmul, against=lambda a, b: np.matmul(a, b) + 1, examples=20)


def test_check_finds_a_call_that_differs_from_the_reference(monkeypatch):
    @tl.compute
    def double(x: tl.f32[N]):
        return tl.tensor(x[i] * 2 for i in N)

    right = tl.Operator.reference  # calls that repeat do not go through __call__
    monkeypatch.setattr(tl.Operator, "reference", lambda *args, **kw: right(*args, **kw) + 1)
    with pytest.raises(AssertionError, match=r"elements (is|are) not close"):
        tlt.check(double, examples=5)
