"""Kernels run thread by thread, in random orders, and give the definition's results."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.errors import CompileError
from tensorlang.ir.affine import affine
from tensorlang.ir.lowered import Allocate
from tensorlang.ir.program import Barrier, For, Seq, Stmt
from tensorlang.ir.walk import iterate, rewrite
from tensorlang.lower.kernel import Kernel, to_kernel
from tensorlang.lower.own_registers import own_registers
from tensorlang.lower.pipeline import lower
from tensorlang.lower.shared_memory import plan_shared_memory
from tensorlang.poly.proof import prove
from tensorlang.targets.gpu import parse_gpu_target
from tests import kernels
from tests.spmd import run_kernel


def kernel_of(s: tl.Schedule) -> Kernel:
    return own_registers(to_kernel(lower(s.program)))


def check_threads(s: tl.Schedule, sizes: dict[str, int], seed: int) -> None:
    arrays, values = kernels.arguments(s.program, sizes)
    expected = s.operator.reference(*arrays.values())
    (found,) = run_kernel(kernel_of(s), list(arrays.values()), values, seed)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


SMALL = {
    "add": lambda: kernels.vector_add(4),
    "softmax": lambda: kernels.row_softmax(4),
    "transpose": lambda: kernels.padded_transpose(3),
    "matmul": lambda: kernels.tiled_matmul((4, 6, 2), (2, 3), vector=1),
}
SIZES = st.sampled_from([0, 1, 2, 3, 5, 7, 8, 11])


@pytest.mark.parametrize("name", SMALL)
@given(m=SIZES, n=SIZES, k=SIZES, seed=st.integers(0, 5))
@settings(max_examples=12, deadline=None)
def test_threads_in_any_order_compute_the_definition(
    name: str, m: int, n: int, k: int, seed: int
) -> None:
    check_threads(SMALL[name](), {"M": m, "N": n, "K": k}, seed)


def test_vectors_and_registers_of_a_matmul() -> None:
    s = kernels.tiled_matmul((8, 8, 4), (4, 4), vector=4)
    kernel = kernel_of(s)
    assert kernel.block == (2, 2, 1)
    assert [str(extent) for extent in kernel.grid] == ["(N + 7) // 8", "(M + 7) // 8", "1"]
    sizes = [stmt.buffer.size for stmt in iterate(kernel.body) if isinstance(stmt, Allocate)]
    assert sizes == [affine(16)]
    for m, n, k in ((3, 12, 8), (8, 8, 4), (9, 4, 0)):
        arrays, values = kernels.arguments(s.program, {"M": m, "N": n, "K": k})
        (found,) = run_kernel(kernel, list(arrays.values()), values)
        expected = s.operator.reference(*arrays.values())
        np.testing.assert_allclose(found.reshape(m, n), expected, rtol=1e-4, atol=1e-5)


def test_a_kernel_without_its_barriers_goes_wrong() -> None:
    """The check above can fail: threads that do not wait read what is not there yet."""
    kernel = kernel_of(kernels.padded_transpose(3))
    body = rewrite(kernel.body, lambda s: Seq(()) if isinstance(s, Barrier) else s)
    arrays, values = kernels.arguments(kernels.padded_transpose(3).program, {"M": 3, "N": 3})
    (found,) = run_kernel(replace(kernel, body=body), [next(iter(arrays.values()))], values)
    assert np.isnan(found).any()


def test_an_axis_that_a_nest_lacks_is_run_by_its_first_thread() -> None:
    M, N = tl.dims("M N")

    @tl.compute
    def scaled(X: tl.f32[M, N]):
        low = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
        return tl.tensor(X[i, j] - low[i] for i in M for j in N)

    s = tl.schedule(scaled)
    i, j = s.loops
    io, ii = s.split(i, 2)
    jo, ji = s.split(j, 4)
    s.reorder(io, ii, ji, jo)
    s.compute_at("low", io)
    s.bind(io, "block.x")
    s.bind(ii, "thread.y")
    s.bind(ji, "thread.x")
    rows, _ = s["low"].loops
    s.bind(rows, "thread.x")
    s.verify()
    kernel = kernel_of(s)
    assert kernel.block == (4, 2, 1)
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    (found,) = run_kernel(kernel, [x], dict(zip(s.definition.sizes, (3, 5), strict=True)), seed=3)
    np.testing.assert_allclose(found.reshape(3, 5), x - x.max(1, keepdims=True))


# --- what is refused -----------------------------------------------------------------------------


def test_a_program_without_bound_loops_is_no_kernel() -> None:
    s = tl.schedule(kernels.add)
    with pytest.raises(CompileError) as error:
        to_kernel(lower(s.program))
    assert str(error.value) == (
        "add has no loop that runs on a GPU.\n"
        'Bind the outermost loops to "block.x", ... and loops inside them to "thread.x", ...: '
        's.bind(loop, "block.x"). There are no rules yet that do so by themselves.'
    )


def test_several_nests_are_several_kernels() -> None:
    s = tl.schedule(kernels.softmax)
    s.compute_inline("e")
    _, thread = s.split(s.loops[1], 8)
    s.bind(thread, "thread.x")
    program = lower(s.program)

    def bound(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == "serial" and str(stmt.variable) == "i":
            return replace(stmt, kind="block.x")
        return stmt

    with pytest.raises(CompileError, match="softmax is more than one kernel: a statement stands"):
        to_kernel(replace(program, body=rewrite(program.body, bound)))


def test_registers_that_two_threads_would_share() -> None:
    s = kernels.tiled_matmul((8, 8, 4), (4, 4), vector=1, swap=True)
    with pytest.raises(CompileError) as error:
        kernel_of(s)
    assert str(error.value) == (
        "matmul.local of matmul lies in registers, which other threads cannot see, but one nest "
        "gives the elements to the threads by 32 * thread.y (of 2) + 4 * thread.x (of 2), another "
        "by 32 * thread.x (of 2) + 4 * thread.y (of 2).\nSplit and bind the loops of every nest "
        'that uses it in the same way, or take scope="shared".'
    )


def test_shared_memory_is_dynamic_above_48_kilobytes() -> None:
    target = parse_gpu_target("cuda:sm_90")
    small = plan_shared_memory(kernel_of(kernels.tiled_matmul()), target)
    assert (str(small.total), small.is_dynamic) == ("8192", False)
    large = plan_shared_memory(kernel_of(kernels.tiled_matmul((128, 128, 64), (8, 8))), target)
    assert (str(large.total), large.is_dynamic) == ("65536", True)


def test_too_much_shared_memory_is_refused() -> None:
    target = parse_gpu_target("cuda:sm_86")
    kernel = kernel_of(kernels.tiled_matmul((128, 128, 128), (8, 8)))
    with pytest.raises(CompileError) as error:
        plan_shared_memory(kernel, target)
    assert str(error.value) == (
        "matmul needs 131072 bytes of shared memory a block (B.shared 65536, A.shared 65536), and "
        "sm_86 has 101376: take smaller tiles."
    )


# --- random schedules ----------------------------------------------------------------------------


@given(
    tile=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    threads=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    depth=st.integers(2, 4),
    sizes=st.tuples(SIZES, SIZES, SIZES),
    seed=st.integers(0, 5),
)
@settings(max_examples=6, deadline=None)
def test_matmuls_of_any_tiles(
    tile: tuple[int, int],
    threads: tuple[int, int],
    depth: int,
    sizes: tuple[int, int, int],
    seed: int,
) -> None:
    block = (tile[0] * threads[0], tile[1] * threads[1], depth)
    assume(1 not in block)  # an axis of one element has no loop in a copy
    s = kernels.tiled_matmul(block, tile, vector=1)
    evidence = prove(kernels.placed(s))
    assert evidence.ok, str(evidence)
    check_threads(s, dict(zip("MNK", sizes, strict=True)), seed)


@given(data=st.data(), sizes=st.tuples(SIZES, SIZES, SIZES), seed=st.integers(0, 5))
@settings(max_examples=12, deadline=None)
def test_random_nests_with_a_copy_in_shared_memory(
    data: st.DataObject, sizes: tuple[int, int, int], seed: int
) -> None:
    """Loops split, fused and reordered at random, the copy's loops bound in another way."""
    M, N, K = tl.dims("M N K")

    @tl.compute
    def mixed(x: tl.f32[M, N, K]):
        return tl.tensor(x[i, j, k] + x[i, j, k] * 2 for k in K for i in M for j in N)

    draw = data.draw
    s = tl.schedule(mixed)
    outer, inner = [], []
    for loop in s.loops:
        o, i = s.split(loop, draw(st.integers(1, 4)))
        outer.append(o)
        inner.append(i)
    outer, inner = draw(st.permutations(outer)), draw(st.permutations(inner))
    s.reorder(*outer, *inner)
    blocks = draw(st.integers(0, 2))
    for loop, axis in zip(outer[:blocks], draw(st.permutations(("x", "y", "z"))), strict=False):
        s.bind(loop, f"block.{axis}")
    copy = s.cache_read("x", at=outer[2], scope="shared") if draw(st.booleans()) else None
    if draw(st.booleans()):
        inner = [s.fuse(*inner[:2]), inner[2]]
    for loop, axis in zip(inner, draw(st.permutations(("x", "y", "z"))), strict=False):
        if draw(st.booleans()):
            s.bind(loop, f"thread.{axis}")
    if copy is not None and copy.loops:
        loop = s.fuse(*copy.loops) if len(copy.loops) > 1 else copy.loops[0]
        _, thread = s.split(loop, draw(st.integers(1, 5)))
        s.bind(thread, f"thread.{draw(st.sampled_from('xyz'))}")
    if "thread." not in str(s) and "block." not in str(s):
        return
    evidence = prove(kernels.placed(s))
    assert evidence.ok, str(evidence)
    named = dict(zip("MNK", sizes, strict=True))
    kernels.check_interpreted(s, named)
    check_threads(s, named, seed)
