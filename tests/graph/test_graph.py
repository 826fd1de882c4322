"""Building graphs, running them, and what is said of mistakes."""

import threading

import numpy as np
import pytest

import tensorlang as tl

B, N, H = tl.dims("B N H")
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype("f4")


@tl.graph
def layer(x: tl.f32[B, N], w: tl.f32[N, H], b: tl.f32[H]):
    """Return a layer."""
    return tl.nn.relu(x @ w + b)


@tl.graph
def several(x, *, factor: float = 2.0):
    y = x * factor
    return y[:, 1:], y > 0, x, x, y.T, -y


def test_a_graph_prints_as_a_function():
    assert str(layer) == (
        "def layer(x: f32[B, N], w: f32[N, H], b: f32[H]) -> f32[B, H]:\n"
        "    matmul = matmul(x, w)  # f32[B, H]\n"
        "    add = add(matmul, b)   # f32[B, H]\n"
        "    relu = relu(add)       # f32[B, H]\n"
        "    return relu"
    )
    assert str(tl.compile(layer)) == (
        "def layer(x: f32[B, N], w: f32[N, H], b: f32[H]) -> f32[B, H]:\n"
        "    relu = matmul_add_relu(x, w, b)  # f32[B, H]\n"
        "    return relu"
    )


def test_summary_counts_operations():
    assert layer.graph().summary().splitlines()[1].split() == [
        "matmul", "matmul", "f32[B,", "H]", "2", "*", "B", "*", "N", "*", "H", "0",
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_calls(rows):
    x, w, b = normal(rows, 7), normal(7, 3), normal(3)
    expected = np.maximum(x @ w + b, 0)
    np.testing.assert_allclose(layer(x, w, b), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer(b=b, x=x, w=w), expected, rtol=1e-4, atol=1e-5)
    out = np.empty((rows, 3), "f4")
    assert tl.compile(layer)(x, w, b, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_several_outputs_are_arrays_of_their_own():
    x = normal(4, 5)
    results = several(x)
    for found, expected in zip(results, several.reference(x), strict=True):
        np.testing.assert_array_equal(found, expected)
    results[2][:] = 0
    assert not np.array_equal(results[3], results[2])
    np.testing.assert_array_equal(several(x, factor=3)[5], -x * 3)


def test_strided_inputs():
    x, w, b = normal(14, 10)[::2, 1:8], normal(3, 7).T, normal(3)
    np.testing.assert_allclose(layer(x, w, b), np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-5)


def test_a_graph_inside_a_graph():
    @tl.graph
    def net(x: tl.f32[B, 7], w: tl.f32[7, 7], b: tl.f32[7]):
        return layer(layer(x, w, b), w, b)

    x, w, b = normal(3, 7), normal(7, 7), normal(7)
    np.testing.assert_allclose(net(x, w, b), layer(layer(x, w, b), w, b), rtol=1e-4, atol=1e-5)


def test_operators_with_scalars_and_sizes():
    @tl.compute
    def scaled(x: tl.f32[N], alpha: tl.f32):
        return tl.tensor(alpha * x[i] for i in N)

    @tl.compute
    def spread(x: tl.f32[N], *, n: tl.Dim):
        return tl.tensor(x[j] + i for i in n for j in N)

    g = tl.Graph()
    g.output(spread(scaled(g.input("x", tl.f32[N]), 0.1), n=N + 1))
    x = normal(5)
    expected = np.float32(0.1) * x + np.arange(6, dtype="f4")[:, None]
    np.testing.assert_allclose(g(x), expected, rtol=1e-6)


def test_constants_are_copied():
    w = normal(3)
    g = tl.Graph()
    g.output(g.input("x", tl.f32[N, 3]) + w)
    kept = w.copy()
    w[:] = 0
    np.testing.assert_array_equal(g(np.zeros((2, 3), "f4")), [kept, kept])


def test_threads_do_not_share_temporaries():
    @tl.graph
    def chain(x: tl.f32[B, N]):
        return tl.nn.softmax(tl.nn.softmax(x).T)

    compiled = tl.compile(chain)
    arrays = [normal(31, 17) for _ in range(8)]
    expected = [compiled(array) for array in arrays]
    failures = []

    def work(number):
        for _ in range(20):
            if not np.array_equal(compiled(arrays[number]), expected[number]):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def message_of(build):
    with pytest.raises(tl.DefinitionError) as caught:
        build(tl.Graph("g"))
    return str(caught.value)


def test_a_shape_that_cannot_be_is_reported_at_the_users_line():
    def build(g):
        return g.input("x", tl.f32[B, 4]) @ g.input("w", tl.f32[5, H])

    message = message_of(build)
    assert message.startswith("matmul(x: f32[B, 4], w: f32[5, H]): ")
    assert "the last axis of a and the one before the last of b must be equal" in message
    assert __file__ in message
    assert 'return g.input("x", tl.f32[B, 4]) @ g.input("w", tl.f32[5, H])' in message


def test_symbolic_sizes_that_must_agree_are_checked_at_the_call():
    g = tl.Graph("g")
    g.output(g.input("x", tl.f32[B]) + g.input("y", tl.f32[N]))
    np.testing.assert_array_equal(g(np.ones(3, "f4"), np.ones(3, "f4")), [2, 2, 2])
    with pytest.raises(ValueError, match=r"axis -1 of the operands must be equal.*B = 3, N = 4"):
        g(np.ones(3, "f4"), np.ones(4, "f4"))


@pytest.mark.parametrize(
    ("build", "text"),
    [(lambda g: g.input("x", tl.f32[B])[0, 0], "x has 1 axes, but 2 indices are given"),
     (lambda g: g.input("x", tl.f32[4])[4], "index 4 is out of bounds for axis 0 of x: f32[4]"),
     (lambda g: g.input("x", tl.f32[4])[::-1], "a slice of x must have a positive step, not -1"),
     (lambda g: bool(g.input("x", tl.f32[()])), "x is used as a condition"),
     (lambda g: list(g.input("x", tl.f32[4])), "x is iterated by Python"),
     (lambda g: g.output(3), "an output must be a tensor of this graph, not 3"),
     (lambda g: (g.input("x", tl.f32[4]), g.input("x", tl.f32[4])), "the name x is taken"),
     (lambda g: g.input("x", tl.f32["N"]), "'N' in the shape of x is not a size"),
     (lambda g: tl.nn.relu(g.input("x", tl.f32[4]), 3), "takes 1 positional argument, but 2"),
     (lambda g: tl.nn.matmul(g.input("x", tl.f32[4]), "w"), "must be a tensor of the graph or an"),
     (lambda g: g.input("x", tl.f32[tl.dim("B"), B]), "two different dims are called B"),
     (lambda g: g.input("x", tl.f32[4]) + tl.Graph("h").input("y", tl.f32[4]),
      "b is a tensor of the graph h, not of g"),
     (lambda g: tl.compile(g), "the graph g has no output")],
)  # fmt: skip
def test_mistakes(build, text):
    assert text in message_of(build)


def test_arguments_that_do_not_fit():
    w, b = normal(7, 3), normal(3)
    with pytest.raises(TypeError, match="float64"):
        tl.compile(layer)(normal(2, 7).astype("f8"), w, b)
    with pytest.raises(ValueError, match="N"):
        layer(normal(2, 6), w, b)
    x = normal(3, 3)
    with pytest.raises(ValueError, match="shares memory with x"):
        tl.compile(layer)(x, normal(3, 3), b, out=x)
