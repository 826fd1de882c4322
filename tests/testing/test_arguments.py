import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import tensorlang as tl
import tensorlang.testing as tlt
from tensorlang.ir.affine import evaluate
from tensorlang.testing.sizes import candidate_sizes, fits, most_terms, points

M, N, K, H, W, R, S = tl.dims("M N K H W R S")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def correlate(x: tl.f64[N], w: tl.f64[K], scale: tl.f64, *, step: int = 1):
    return tl.tensor(tl.sum(x[step * i + k] * w[k] for k in K) * scale for i in (N - K) // step + 1)


@tl.compute
def take(table: tl.i32[N], x: tl.f32[M, K]):
    return tl.tensor(x[table[i], k] for i in N for k in K)


@tl.compute
def relu(x):
    return tl.tensor(tl.maximum(x[i], 0) for i in tl.grid(x.shape))


@tl.compute
def count(*, n: tl.Dim):
    return tl.tensor(tl.cast(i, tl.f32) for i in n)


def found(strategy, condition):
    """Return an example without shrinking it, which takes most of the time."""
    quick = settings(max_examples=2000, database=None, phases=[Phase.generate])
    return find(strategy, condition, settings=quick)


@given(tlt.arguments(matmul))
def test_arguments_fit(args):
    a, b = args
    assert a.shape[1] == b.shape[0]
    assert a.dtype == b.dtype == np.float32
    assert matmul.reference(*args).shape == (a.shape[0], b.shape[1])
    assert most_terms(args.definition, args.sizes) == a.shape[1]


def test_every_kind_of_size_and_of_memory_appears():
    strategy = tlt.arguments(matmul)
    assert found(strategy, lambda args: args[0].shape == (0, 3))[0].shape == (0, 3)
    for wanted in (
        lambda a: 1 in a.shape,
        lambda a: a.shape[0] % 16 == 1 and a.shape[0] > 16,
        lambda a: not a.flags.c_contiguous and min(a.strides) < 0,
        lambda a: not a.flags.c_contiguous and a.flags.f_contiguous,
        lambda a: a.size and not a.flags.c_contiguous and abs(a.strides[-1]) == 8,
        lambda a: not a.flags.writeable,
        lambda a: np.isnan(a).any(),
        lambda a: np.isinf(a).any(),
        lambda a: (np.signbit(a) & (a == 0)).any(),
        lambda a: a.size and (a != np.round(a * 8) / 8).all(),
    ):
        found(strategy, lambda args, wanted=wanted: wanted(args[0]))


@given(tlt.arguments(matmul, special=False))
def test_no_special_values_when_none_are_wanted(args):
    assert all(np.isfinite(array).all() for array in args)


@given(tlt.arguments(matmul, M=3, K=2))
def test_fixed_sizes(args):
    assert args[0].shape == (3, 2)
    assert matmul.reference(*args).shape == (3, args[1].shape[1])


@given(tlt.arguments(correlate, step=2))
def test_conditions_scalars_and_attributes(args):
    x, w, scale = args
    assert args.keywords == {"step": 2}
    extent = (len(x) - len(w)) // 2 + 1
    assert extent >= 0
    assert isinstance(scale, float)
    assert correlate.reference(*args, **args.keywords).shape == (extent,)


@given(tlt.arguments(take))
def test_indices_are_in_range(args):
    table, x = args
    assert ((table >= 0) & (table < len(x))).all()
    assert take.reference(*args).shape == (len(table), x.shape[1])


@given(tlt.arguments(relu))
def test_generic_operators_get_several_ranks_and_dtypes(args):
    assert relu.reference(*args).shape == args[0].shape


def test_the_ranks_and_dtypes_of_generic_operators():
    strategy = tlt.arguments(relu)
    for rank in range(4):
        for dtype in (np.float32, np.float64):
            found(strategy, lambda args, r=rank, d=dtype: (args[0].ndim, args[0].dtype) == (r, d))


@given(tlt.arguments(relu, tl.i32[M, 5]))
def test_annotations_describe_generic_parameters(args):
    assert args[0].dtype == np.int32
    assert args[0].shape[1] == 5


@given(tlt.arguments(count))
def test_sizes_given_by_name_only_are_keywords(args):
    assert tuple(args) == ()
    assert count.reference(*args, **args.keywords).tolist() == list(range(args.keywords["n"]))


def test_arguments_show_what_they_are():
    args = found(tlt.arguments(correlate, step=3), lambda args: args[0].size == 1)
    assert repr(args).startswith("Arguments(<float64 (1,)")
    assert repr(args).endswith(", step=3)")


# --- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [matmul, correlate, take])
def test_candidate_sizes_satisfy_the_conditions(op):
    definition = op.definition()
    candidates = candidate_sizes(definition)
    assert candidates == sorted(candidates, key=lambda sizes: sum(sizes.values()))
    for sizes in candidates:
        assert fits(definition, sizes)
        assert points(definition, sizes) <= 20_000
        for stage in definition.stages:
            assert all(evaluate(axis.extent, sizes) >= 0 for axis in stage.all_axes)
    assert any(0 in sizes.values() for sizes in candidates)


def test_conditions_that_cannot_be_satisfied():
    @tl.compute
    def far(x: tl.f32[N]):
        return tl.tensor(x[i + 100] for i in N - 100)

    definition = far.definition()
    with pytest.raises(ValueError, match=r"no small sizes satisfy the conditions of far: "):
        candidate_sizes(definition)
    assert tlt.arguments(far, N=120).example is not None


def test_generic_operators_that_need_a_description():
    @tl.compute
    def rows(x):
        return tl.tensor(x[0, 1, 2, i] for i in x.shape[3])

    with pytest.raises(ValueError, match=r"rows is generic: describe its parameters, as in tlt"):
        found(tlt.arguments(rows), lambda args: True)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_large_fixed_sizes_stay_possible(data):
    args = data.draw(tlt.arguments(matmul, M=64, N=64, K=64))
    assert args[0].shape == (64, 64)
