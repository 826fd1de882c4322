import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.dtypes import bf16, f16, f32, f64, i32, i64, to_numpy
from tensorlang.interpreter.failures import InterpreterError
from tensorlang.interpreter.run import run_program
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Combiner, Condition, Scalar, Stage, Tensor
from tensorlang.ir.expr import (
    Cast,
    Const,
    IndexValue,
    Load,
    Placeholder,
    ScalarRef,
    index_from_value,
)
from tensorlang.ir.program import Alloc, Compute, For, Fused, If, Layout, Run, Seq

from .programs import (
    Map,
    Matmul,
    axes,
    call,
    combiner,
    definition,
    index_value,
    less,
    loops,
    naive_program,
    program,
    where,
)

EXTENTS = st.sampled_from([0, 1, 2, 3, 5, 7])


def small_integers(shape, dtype=f32, seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(to_numpy(dtype))


def run_matmul(op, body, m, n, k, **more):
    a, b = small_integers((m, k)), small_integers((k, n), seed=1)
    result = run_program(
        program(op.definition, body), {op.a: a, op.b: b}, op.sizes(m, n, k), **more
    )
    return result[op.c], a @ b


@given(EXTENTS, EXTENTS, EXTENTS, st.sampled_from([f32, f64, i32, i64]))
def test_naive_matmul(m, n, k, dtype):
    op = Matmul(dtype)
    a, b = small_integers((m, k), dtype), small_integers((k, n), dtype, seed=1)
    result = run_program(naive_program(op.definition), {op.a: a, op.b: b}, op.sizes(m, n, k))
    np.testing.assert_array_equal(result[op.c], a @ b)
    assert result[op.c].dtype == to_numpy(dtype)


def tiled(op, tile_m, tile_n, kinds=("serial",) * 4, cover=True):
    """Return a matmul in tiles, accumulated in a local box and copied out."""
    local = Tensor("C.local", op.c.shape, op.c.dtype)
    io, jo, k = Var("i.o"), Var("j.o"), Var("k")
    tiles_m = (affine(op.m) + (tile_m - 1 if cover else 0)) // tile_m
    tiles_n = (affine(op.n) + (tile_n - 1 if cover else 0)) // tile_n

    def inner(make):
        ii, ji = Var("i.i"), Var("j.i")
        i, j = affine(io) * tile_m + ii, affine(jo) * tile_n + ji
        guard = (affine(op.m) - 1 - i, affine(op.n) - 1 - j)
        return loops([(ii, tile_m, kinds[2]), (ji, tile_n, kinds[3])], make(i, j, guard))

    via = ((op.c, local),)
    copy = Stage(
        (op.c,), op.stage.axes, (Load(local, tuple(map(affine, op.stage.variables[:2]))),),
        copies=local,
    )  # fmt: skip
    init = inner(lambda i, j, guard: op.init(i, j, guard=guard, via=via))
    update = loops([(k, op.k)], inner(lambda i, j, guard: op.update(i, j, k, guard=guard, via=via)))
    out = inner(lambda i, j, guard: Compute(copy, (i, j), guard))
    box = Alloc(
        local, (affine(io) * tile_m, affine(jo) * tile_n), (affine(tile_m), affine(tile_n)),
        "local", Seq((init, update, out)),
    )  # fmt: skip
    return loops([(io, tiles_m, kinds[0]), (jo, tiles_n, kinds[1])], box)


@given(EXTENTS, EXTENTS, EXTENTS, st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 4]))
def test_tiles_with_an_accumulator_and_tails(m, n, k, tile_m, tile_n):
    op = Matmul()
    kinds = ("parallel", "parallel", "unrolled", "vectorized")
    result, expected = run_matmul(op, tiled(op, tile_m, tile_n, kinds), m, n, k)
    np.testing.assert_array_equal(result, expected)


def test_an_output_left_unwritten_is_found():
    op = Matmul()
    with pytest.raises(InterpreterError) as error:
        run_matmul(op, tiled(op, 2, 2, cover=False), 5, 4, 3)
    assert str(error.value) == "the output C[4, 0] was never written"


def test_an_update_without_init_reads_poison():
    op = Matmul()
    i, j, k = Var("i"), Var("j"), Var("k")
    body = loops([(i, op.m), (j, op.n), (k, op.k)], op.update(i, j, k))
    with pytest.raises(InterpreterError) as error:
        run_matmul(op, body, 2, 3, 4)
    assert str(error.value) == (
        "C[i=0, j=0, k=0] (update) reads C[0, 0], "
        "which was never written since its storage was allocated"
    )


@pytest.mark.parametrize("dtype", [f32, f16])
def test_a_copy_under_a_condition_moves_too_and_arithmetic_does_not(dtype):
    op = Map(dtype=dtype)
    local, i = Tensor("Y.local", op.y.shape, dtype), Var("i")
    element, inside = Load(op.y, (affine(op.i),)), less(op.i, op.n)
    x = np.arange(3).astype(to_numpy(dtype))

    def run(value):
        into = Stage((local,), op.stage.axes, (value,), copies=op.y)
        back = Stage((op.y,), op.stage.axes, (Load(local, (affine(op.i),)),), copies=local)
        fill = op.compute(i, via=((op.y, local),))
        body = Seq((Compute(into, (affine(i),)), fill, Compute(back, (affine(i),))))
        body = loops([(i, op.n)], Alloc(local, (affine(i),), (affine(1),), "local", body))
        return run_program(program(op.definition, body), {op.x: x}, {op.n: 3})[op.y]

    np.testing.assert_array_equal(run(where(inside, element, Const(0, dtype))), x + 1)
    positive = call("lt", Const(0, dtype), element)
    for value in (where(positive, element, Const(0, dtype)), call("neg", element)):
        with pytest.raises(InterpreterError, match=r"reads Y\[0\], which was never written"):
            run(value)


def test_a_copy_moves_what_was_never_written():
    """A box may be copied in before it is overwritten; whoever uses such an element is caught."""
    op = Map()
    local = Tensor("Y.local", op.y.shape, f32)
    i = Var("i")
    into = Stage((local,), op.stage.axes, (Load(op.y, (affine(op.i),)),), copies=op.y)
    back = Stage((op.y,), op.stage.axes, (Load(local, (affine(op.i),)),), copies=local)
    fill = op.compute(i, via=((op.y, local),))
    inside = Seq((Compute(into, (affine(i),)), fill, Compute(back, (affine(i),))))
    body = loops([(i, op.n)], Alloc(local, (affine(i),), (affine(1),), "local", inside))
    x = np.arange(3, dtype=np.float32)
    result = run_program(program(op.definition, body), {op.x: x}, {op.n: 3})
    np.testing.assert_array_equal(result[op.y], x + 1)


def test_storage_is_fresh_in_every_iteration():
    op = Map()
    local = Tensor("Y.local", op.y.shape, f32)
    i = Var("i")
    copy = Stage((op.y,), op.stage.axes, (Load(local, (affine(op.i),)),), copies=local)
    fill = op.compute(i, guard=(-affine(i),), via=((op.y, local),))  # the first iteration only
    body = Alloc(local, (affine(0),), op.y.shape, "local", Seq((fill, Compute(copy, (affine(i),)))))
    with pytest.raises(InterpreterError, match=r"the output Y\[1\] was never written"):
        run_program(
            program(op.definition, loops([(i, op.n)], body)),
            {op.x: np.zeros(3, np.float32)},
            {op.n: 3},
        )


def run_map(op, body, count, x=None, **more):
    x = small_integers(count) if x is None else x
    result = run_program(program(op.definition, body), {op.x: x}, {op.n: count}, **more)
    return result[op.y], x


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorized", "unrolled"])
def test_leaving_a_tensor_is_an_error(kind):
    op, i = Map(), Var("i")
    body = loops([(i, affine(op.n) + 1, kind)], op.compute(i))
    with pytest.raises(InterpreterError) as error:
        run_map(op, body, 4)
    assert str(error.value) == "Y[i=4] writes Y[4], outside [0 <= _ < 4]"
    assert not isinstance(error.value, IndexError)


def test_leaving_a_box_is_an_error_also_below_its_origin():
    op, i = Map(), Var("i")
    local = Tensor("Y.local", op.y.shape, f32)
    body = loops([(i, op.n)], op.compute(i, via=((op.y, local),)))
    body = Alloc(local, (affine(1),), (affine(op.n),), "local", body)
    with pytest.raises(InterpreterError) as error:
        run_map(op, body, 4)
    assert str(error.value) == "Y[i=0] writes Y.local[0], outside [1 <= _ < 5]"


# --- loops that run in any order -----------------------------------------------------------------


def reduce_rows(kind):
    """Sum X over i in a loop of a given kind."""
    n, i = Var("N"), Var("i")
    x, y = Tensor("X", (affine(n),), f32), Tensor("Y", (), f32)
    stage = Stage(
        (y,), (), (Load(x, (affine(i),)),), axes((i, n)), combiner("sum", "add", 0, f32)
    )  # fmt: skip
    op = definition((x,), (stage,), (y,), (n,))
    loop = Var("i")
    body = Seq(
        (
            Compute(stage, (), part="init"),
            loops([(loop, n, kind)], Compute(stage, (affine(loop),), part="update")),
        )
    )
    return op, x, y, n, body


@pytest.mark.parametrize("kind", ["parallel", "vectorized"])
def test_reducing_in_any_order_is_a_race(kind):
    op, x, _, n, body = reduce_rows(kind)
    with pytest.raises(InterpreterError) as error:
        run_program(program(op, body), {x: np.ones(4, np.float32)}, {n: 4})
    assert f"of the {kind} loop i also accessed, and not all of them only read it" in str(
        error.value
    )


def test_a_vectorized_reduction_gives_another_result():
    op, x, y, n, body = reduce_rows("vectorized")
    result = run_program(program(op, body), {x: np.ones(4, np.float32)}, {n: 4}, detect_races=False)
    assert result[y] == 1  # every lane added to what stood there before the first one


class Running:
    """Y[i] = X[i] + (Y[i - 1] if i > 0 else 0): what a scan becomes."""

    def __init__(self, kind):
        def value(op):
            before = Load(op.y, (affine(op.i) - 1,))
            positive = less(affine(0), op.i)
            return call("add", Load(op.x, (affine(op.i),)), where(positive, before, Const(0, f32)))

        self.op, i = Map(value), Var("i")
        self.body = loops([(i, self.op.n, kind)], self.op.compute(i))


def test_a_recurrence_in_order():
    running = Running("serial")
    result, x = run_map(running.op, running.body, 6)
    np.testing.assert_array_equal(result, np.cumsum(x))


@pytest.mark.parametrize("kind", ["parallel", "vectorized"])
def test_a_recurrence_out_of_order_is_found(kind):
    running = Running(kind)
    with pytest.raises(InterpreterError, match=r"also accessed|never written"):
        run_map(running.op, running.body, 6)
    with pytest.raises(InterpreterError, match="never written"):
        run_map(running.op, running.body, 6, detect_races=False)


def test_a_shared_box_in_a_parallel_loop_is_a_race():
    op, i = Map(), Var("i")
    local = Tensor("T", (affine(1),), f32)
    fill = Stage((local,), axes((op.i, 1)), (Const(1, f32),))
    use = Stage((op.y,), op.stage.axes, (Load(local, (affine(0),)),))
    pair = Seq((Compute(fill, (affine(0),)), Compute(use, (affine(i),))))
    shared = Alloc(local, (affine(0),), (affine(1),), "local", loops([(i, op.n, "parallel")], pair))
    with pytest.raises(InterpreterError, match=r"T\[i=0\] writes T\[0\], which .* parallel loop i"):
        run_map(op, shared, 3)
    private = loops(
        [(i, op.n, "parallel")], Alloc(local, (affine(0),), (affine(1),), "local", pair)
    )
    assert run_map(op, private, 3)[0].tolist() == [1, 1, 1]


def test_parallel_iterations_run_in_an_order_of_the_seed():
    running = Running("parallel")
    outcomes = set()
    for seed in range(8):
        try:
            run_map(running.op, running.body, 4, seed=seed, detect_races=False)
        except InterpreterError as error:
            outcomes.add(str(error))
    assert len(outcomes) > 1


def test_reading_one_element_in_all_iterations_is_no_race():
    op, i = Map(lambda op: Load(op.x, (affine(0),))), Var("i")
    result, x = run_map(op, loops([(i, op.n, "parallel")], op.compute(i)), 4)
    assert result.tolist() == [x[0]] * 4


@given(EXTENTS, EXTENTS, EXTENTS)
def test_lanes_around_an_inner_loop_of_uneven_extent(m, n, k):
    op = Matmul()
    i, j, r, i2, j2 = Var("i"), Var("j"), Var("k"), Var("i"), Var("j")
    # only the triangle k <= j: the inner loop's extent is another one in each lane
    init = loops([(i2, op.m), (j2, op.n)], op.init(i2, j2))
    extent = affine(j) + 1
    body = loops(
        [(i, op.m), (j, op.n, "vectorized"), (r, extent)],
        op.update(i, j, r, guard=(affine(op.k) - 1 - affine(r),)),
    )
    result, _ = run_matmul(op, Seq((init, body)), m, n, k)
    a, b = small_integers((m, k)), small_integers((k, n), seed=1)
    np.testing.assert_array_equal(result, a @ np.triu(b))


# --- fused loops ---------------------------------------------------------------------------------


@given(EXTENTS, EXTENTS, st.sampled_from(["serial", "parallel", "vectorized"]))
def test_fused_loops(m, n, kind):
    op = Matmul()
    f, i, j, k = Var("f"), Var("i"), Var("j"), Var("k")
    nest = Seq((op.init(i, j), loops([(k, op.k)], op.update(i, j, k))))
    body = Fused(f, (i, j), (affine(op.m), affine(op.n)), kind, nest)
    result, expected = run_matmul(op, body, m, n, 3)
    np.testing.assert_array_equal(result, expected)


@given(
    EXTENTS,
    EXTENTS,
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["serial", "vectorized"]),
    st.booleans(),
)
def test_runs_of_a_fused_loop(m, n, size, kind, is_handle):
    op = Matmul()
    f, i, j, k, chunk, offset = (Var(name) for name in ("f", "i", "j", "k", "f.o", "f.i"))
    nest = Seq((op.init(i, j), loops([(k, op.k)], op.update(i, j, k))))
    run = Run(chunk, offset, size)
    handle = offset if is_handle else f
    piece = Fused(handle, (i, j), (affine(op.m), affine(op.n)), kind, nest, run)
    chunks = (affine(op.m) * op.n + size - 1) // size
    result, expected = run_matmul(op, loops([(chunk, chunks, "parallel")], piece), m, n, 3)
    np.testing.assert_array_equal(result, expected)


def digits(loop):
    """Return what stands in Y after ``Y = 10 * Y + p`` for each instance p of ``loop(compute)``."""
    p, y = Var("p"), Tensor("Y", (), i64)
    left, right = Placeholder("a", i64), Placeholder("b", i64)
    shifted = call("add", call("mul", left, Const(10, i64)), right)
    appending = Combiner("custom", (left,), (right,), (shifted,), (Const(0, i64),), ordered=True)
    stage = Stage((y,), (), (IndexValue(affine(p), i64),), axes((p, 9)), appending)
    op = definition((), (stage,), (y,), ())
    body = Seq(
        (Compute(stage, (), part="init"), loop(lambda p: Compute(stage, (p,), part="update")))
    )
    return int(run_program(program(op, body), {}, {})[y])


def test_fused_loops_are_lexicographic_also_when_triangular():
    f, i, j = Var("f"), Var("i"), Var("j")
    number = affine(i) * 3 + j
    square = (affine(2), affine(3))
    assert digits(lambda update: Fused(f, (i, j), square, "serial", update(number))) == 12345
    triangle = (affine(3), affine(i) + 1)
    assert digits(lambda update: Fused(f, (i, j), triangle, "serial", update(number))) == 34678
    chunk = Var("f.o")
    run = Run(chunk, Var("f.i"), 4)
    for extents, expected in ((square, 12345), (triangle, 34678)):
        assert expected == digits(
            lambda update, extents=extents: loops(
                [(chunk, 2)], Fused(f, (i, j), extents, "serial", update(number), run)
            )
        )


# --- layouts -------------------------------------------------------------------------------------


def with_layout(layout, count=10):
    op, i, j = Map(), Var("i"), Var("j")
    local = Tensor("Y.local", op.y.shape, f32)
    copy = Stage((op.y,), op.stage.axes, (Load(local, (affine(op.i),)),), copies=local)
    body = Seq(
        (
            loops([(i, op.n)], op.compute(i, via=((op.y, local),))),
            loops([(j, op.n)], Compute(copy, (affine(j),))),
        )
    )
    return op, Alloc(local, (affine(0),), op.y.shape, "global", body, layout(op))


def test_a_layout_that_packs():
    p = Var("p")
    op, body = with_layout(
        lambda op: Layout(
            (p,), (affine(p) % 4, affine(p) // 4), (affine(4), (affine(op.n) + 3) // 4)
        )
    )
    result, x = run_map(op, body, 10)
    np.testing.assert_array_equal(result, x + 1)


def test_a_layout_that_puts_two_elements_in_one_place():
    p = Var("p")
    op, body = with_layout(lambda op: Layout((p,), (affine(p) // 2,), (affine(op.n),)))
    with pytest.raises(InterpreterError) as error:
        run_map(op, body, 4)
    assert str(error.value) == (
        "the layout of Y.local puts the positions (0,) and (1,) in one place, (0,)"
    )


def test_a_layout_that_leaves_its_shape():
    p = Var("p")
    op, body = with_layout(lambda op: Layout((p,), (affine(p) * 2,), (affine(op.n),)))
    with pytest.raises(InterpreterError) as error:
        run_map(op, body, 4)
    assert str(error.value) == (
        "the layout of Y.local puts position (2,) at (4,), outside its physical shape (4,)"
    )


# --- expressions ---------------------------------------------------------------------------------


def test_a_branch_that_is_not_taken_loads_nothing():
    shifted = Map(
        lambda op: where(less(affine(0), op.i), Load(op.x, (affine(op.i) - 1,)), Const(7, f32))
    )
    i = Var("i")
    result, x = run_map(shifted, loops([(i, shifted.n)], shifted.compute(i)), 4)
    assert result.tolist() == [7, *x[:-1]]


def test_shared_nodes_run_once_and_only_if_taken(monkeypatch):
    from tensorlang.interpreter import arithmetic

    calls = []

    def counted(x):
        calls.append(float(x))
        return x

    monkeypatch.setitem(arithmetic._IMPLEMENTATIONS, "floor", counted)

    def value(op):
        once = call("floor", Load(op.x, (affine(op.i),)))  # three branches share it, one does not
        first = where(less(op.i, affine(1)), once, Const(5, f32))
        second = where(less(op.i, affine(2)), call("add", once, once), Const(6, f32))
        return call("add", first, second)

    op, i = Map(value), Var("i")
    result, x = run_map(op, loops([(i, op.n)], op.compute(i)), 4)
    assert result.tolist() == [3 * x[0], 5 + 2 * x[1], 11, 11]
    assert calls == [x[0], x[1]]


def test_deeply_shared_and_deeply_nested_expressions_are_linear():
    def doubled(op):
        value = Load(op.x, (affine(op.i),))
        for step in range(200):  # each node used twice: 2 ** 200 paths
            condition = less(op.i, affine(step))
            value = where(condition, call("add", value, Const(0, f32)), value)
        return value

    op, i = Map(doubled), Var("i")
    result, x = run_map(op, loops([(i, op.n)], op.compute(i)), 3)
    np.testing.assert_array_equal(result, x)


def test_scalars_and_indices_as_values():
    alpha = Scalar("alpha", f32)

    def value(op):
        scaled = call("mul", Load(op.x, (affine(op.i),)), ScalarRef(alpha))
        return call("add", scaled, Cast(index_value(affine(op.i) * 3 - 1), f32))

    op, i = Map(value), Var("i")
    body = program(op.definition, loops([(i, op.n)], op.compute(i)))
    x = small_integers(5)
    result = run_program(body, {op.x: x}, {op.n: 5}, {alpha: 0.5})
    np.testing.assert_array_equal(result[op.y], x * np.float32(0.5) + np.arange(5) * 3 - 1)
    with pytest.raises(InterpreterError, match="the scalar alpha was not given a value"):
        run_program(body, {op.x: x}, {op.n: 5})


def test_each_operation_rounds_in_its_dtype():
    op, i = Map(lambda op: call("mul", call("add", Load(op.x, (affine(op.i),)), Const(1e-8, f32)),
                                Const(1e8, f32))), Var("i")  # fmt: skip
    result, _ = run_map(op, loops([(i, op.n)], op.compute(i)), 1, np.ones(1, np.float32))
    assert result[0] == np.float32(1e8)


@pytest.mark.parametrize("dtype", [f16, bf16])
def test_half_types_round_once_at_the_store(dtype):
    op, i = Map(lambda op: call("sub", call("add", Load(op.x, (affine(op.i),)), Const(1e-4, dtype)),
                                Const(1, dtype)), dtype), Var("i")  # fmt: skip
    x = np.ones(1, to_numpy(dtype))
    result, _ = run_map(op, loops([(i, op.n)], op.compute(i)), 1, x)
    held = np.float32(np.float32(1e-4).astype(to_numpy(dtype)))
    assert result[0] == (np.float32(1) + held - np.float32(1)).astype(to_numpy(dtype))
    assert result[0] != 0  # as it would be, had the sum been rounded


class Gather:
    """Y[i] = X[table[i]]."""

    def __init__(self):
        self.n, self.m = Var("N"), Var("M")
        self.table = Tensor("table", (affine(self.n),), i32)
        self.x = Tensor("X", (affine(self.m),), f32)
        self.y = Tensor("Y", (affine(self.n),), f32)
        i = Var("i")
        index = index_from_value(Cast(Load(self.table, (affine(i),)), i64))
        stage = Stage((self.y,), axes((i, self.n)), (Load(self.x, (index,)),))
        self.definition = definition((self.table, self.x), (stage,), (self.y,), (self.n, self.m))

    def run(self, table):
        inputs = {self.table: np.array(table, np.int32), self.x: np.arange(4, dtype=np.float32)}
        sizes = {self.n: len(table), self.m: 4}
        return run_program(naive_program(self.definition), inputs, sizes)[self.y].tolist()


def test_gather():
    assert Gather().run([3, 0, 0, 2]) == [3, 0, 0, 2]
    for wrong in (4, -1):
        with pytest.raises(IndexError) as error:
            Gather().run([1, wrong])
        assert str(error.value) == f"Y[i=1] reads X[{wrong}], outside [0 <= _ < 4]"


# --- everything else -----------------------------------------------------------------------------


@given(EXTENTS)
def test_conditions(n):
    op, i, j = Map(), Var("i"), Var("j")
    half = (affine(2) - affine(i),)
    stage = Stage((op.y,), op.stage.axes, (Const(9, f32),))
    for kind in ("serial", "vectorized", "parallel"):
        body = If(half, op.compute(i), Compute(stage, (affine(i),)))
        result, x = run_map(op, loops([(i, op.n, kind)], body), n)
        np.testing.assert_array_equal(result, [*(x[:3] + 1), *[9] * max(n - 3, 0)])
    # a condition that no lane enters into
    body = If((affine(op.n) - 3,), loops([(i, op.n, "vectorized")], op.compute(i)),
              loops([(j, op.n)], Compute(stage, (affine(j),))))  # fmt: skip
    result, x = run_map(op, body, n)
    np.testing.assert_array_equal(result, x + 1 if n >= 3 else [9] * n)


def test_more_loops_than_python_nests():
    op, i = Map(), Var("i")
    body = loops([(i, op.n, "vectorized")], op.compute(i))
    for _ in range(40):
        body = For(Var("one"), affine(1), "serial", body)
    result, x = run_map(op, body, 5)
    np.testing.assert_array_equal(result, x + 1)


def test_a_whole_reduction_is_refused():
    op = Matmul()
    i, j, k = Var("i"), Var("j"), Var("k")
    whole = Compute(op.stage, (affine(i), affine(j), affine(k)))
    body = loops([(i, op.m), (j, op.n), (k, op.k)], whole)
    with pytest.raises(InterpreterError, match="C is a reduction whose init is not placed yet"):
        run_matmul(op, body, 1, 1, 1)


def test_programs_that_make_no_sense():
    op, i = Map(), Var("i")
    missing = Tensor("T", op.y.shape, f32)
    compute = op.compute(i, via=((op.x, missing),))
    with pytest.raises(InterpreterError, match="Y reads T, which has no storage"):
        run_map(op, loops([(i, op.n)], compute), 2)
    compute = op.compute(i, via=((op.y, missing),))
    with pytest.raises(InterpreterError, match="Y writes T, which has no storage"):
        run_map(op, loops([(i, op.n)], compute), 2)
    compute = op.compute(i, via=((op.y, op.x),))
    with pytest.raises(InterpreterError, match="Y writes the input X"):
        run_map(op, loops([(i, op.n)], compute), 2)
    with pytest.raises(InterpreterError, match="i has no value where it is used"):
        run_map(op, op.compute(i), 2)
    with pytest.raises(InterpreterError, match="Y binds 2 of its 1 variables"):
        run_map(op, loops([(i, op.n)], Compute(op.stage, (affine(i), affine(i)))), 2)


def test_what_the_caller_gets_wrong():
    op, i = Map(), Var("i")
    body = program(op.definition, loops([(i, op.n)], op.compute(i)))
    x = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match=r"X must have shape \(4,\), not \(3,\)"):
        run_program(body, {op.x: x}, {op.n: 4})
    with pytest.raises(TypeError, match="X must be an array of f32, not of float64"):
        run_program(body, {op.x: x.astype(np.float64)}, {op.n: 3})
    with pytest.raises(InterpreterError, match="the size N was not given a value"):
        run_program(body, {op.x: x}, {})
    odd = Condition(affine(op.n) % 2, "N must be even", equality=True)
    conditional = definition(
        (op.x,), (op.stage,), (op.y,), (op.n,), conditions=(odd,)
    )  # fmt: skip
    with pytest.raises(ValueError, match="N must be even"):
        run_program(program(conditional, body.body), {op.x: x}, {op.n: 3})


def test_strided_input():
    op, i = Map(), Var("i")
    x = np.arange(10, dtype=np.float32)[::-2]
    result, _ = run_map(op, loops([(i, op.n)], op.compute(i)), 5, x)
    np.testing.assert_array_equal(result, x + 1)


def test_operators_on_scalars_equal_the_functions():
    from tensorlang.dtypes import ALL, bool_
    from tensorlang.interpreter.arithmetic import apply
    from tensorlang.interpreter.expressions import OPERATORS
    from tensorlang.ir.functions import FUNCTIONS

    from .test_arithmetic import accepts, array, special_values

    for name, template in OPERATORS.items():
        function = FUNCTIONS[name]
        operator = eval(f"lambda x, y=None: {template.format('x', 'y')}")
        for dtype in ALL:
            if not accepts(function, dtype) or dtype in (f16, bf16):
                continue
            values = list(array(special_values(dtype), dtype))
            result = bool_ if function.result == "bool" else dtype
            pairs = (
                [(a,) for a in values]
                if function.arity == 1
                else [(a, b) for a in values for b in values]
            )
            for args in pairs:
                with np.errstate(all="ignore"):
                    got = operator(*args)
                expected = apply(name, args, result)
                assert got.dtype == expected.dtype
                np.testing.assert_equal(got, expected)


@given(st.sampled_from(["f32", "f64", "i8", "u8", "i32", "i64", "u64", "bool", "f16"]),
       st.sampled_from(["f32", "f64", "i8", "u8", "i32", "i64", "u64", "bool", "f16"]))  # fmt: skip
def test_casts_of_scalars_equal_those_of_arrays(source_name, name):
    from tensorlang.dtypes import BY_NAME
    from tensorlang.interpreter.arithmetic import cast, widen
    from tensorlang.interpreter.conversions import scalar_cast

    from .test_arithmetic import array, special_values

    source, dtype = BY_NAME[source_name], BY_NAME[name]
    limits = [sign * 2.0**bits for bits in (7, 8, 31, 32, 63, 64) for sign in (1, -1)]
    numbers = special_values(source) + (limits if source.kind == "float" else [])
    values = widen(array(numbers, source))
    convert = scalar_cast(source, dtype)
    with np.errstate(all="ignore"):
        got = [convert(value) for value in values]
    expected = cast(values, source, dtype)
    assert {value.dtype for value in got} == {expected.dtype}
    np.testing.assert_array_equal(got, expected)
