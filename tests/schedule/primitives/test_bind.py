"""bind: the printed loops, and each refusal with its whole text."""

import re

import pytest

import tensorlang as tl
from tests import kernels

M, N = tl.dims("M N")


@tl.compute
def scale(x: tl.f32[M, N]):
    return tl.tensor(x[i, j] * 2 for i in M for j in N)


@tl.compute
def sums(x: tl.f32[M, N]):
    return tl.tensor(tl.sum(x[i, j] for j in N) for i in M)


def refusal(s: tl.Schedule, loop: object, axis: str) -> str:
    """Return the error's text without the line of this file and the nest."""
    before = str(s)
    with pytest.raises(tl.ScheduleError) as error:
        s.bind(loop, axis)
    assert str(s) == before
    paragraphs = str(error.value).split("\n\n")
    claim = re.sub(r"\n  at .*", "", paragraphs[0])
    return "\n".join([claim, paragraphs[-1]])


def test_the_printed_loops() -> None:
    assert str(kernels.vector_add(64)) == (
        "def add(A: f32[N], B: f32[N]) -> f32[N]:\n"
        "    block.x for i.o in (N + 63) // 64:\n"
        "        thread.x for i.i in 64:\n"
        "            add[64 * i.o + i.i] = A[64 * i.o + i.i] + B[64 * i.o + i.i]"
        "  # if 64 * i.o + i.i < N"
    )


def test_barriers_are_shown_in_the_lowered_loops() -> None:
    from tensorlang.ir.printer import format_program

    assert "            barrier\n" in format_program(kernels.placed(kernels.padded_transpose()))


def test_a_schedule_with_bound_loops_is_replayed_and_saved() -> None:
    s = kernels.padded_transpose(8)
    again = tl.Schedule.from_json(s.to_json())
    assert str(again) == str(s)
    assert "s.bind('j.o', 'block.y')" in s.to_python()


def test_what_is_no_axis() -> None:
    assert refusal(tl.schedule(scale), "i", "warp") == (
        "bind('i', 'warp') is refused: there is no axis 'warp'\n"
        'Try: "block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z"'
    )


def test_an_axis_twice() -> None:
    s = tl.schedule(scale)
    i, j = s.loops
    s.bind(i, "block.x")
    assert refusal(s, j, "block.x") == (
        "bind('j', 'block.x') is refused: i is bound to block.x, and one of the two loops would "
        "stand inside the other\nTry: another axis: block.x, block.y, block.z"
    )


def test_blocks_are_outermost() -> None:
    s = tl.schedule(scale)
    assert refusal(s, s.loops[1], "block.x") == (
        "bind('j', 'block.x') is refused: blocks are the outermost loops, and the loop i stands "
        "around j\nTry: reorder it outward, compute_at for the other stages, or bind the outer "
        "loop first"
    )


def test_threads_need_a_constant_number() -> None:
    s = tl.schedule(scale)
    assert refusal(s, s.loops[1], "thread.x") == (
        "bind('j', 'thread.x') is refused: the number of threads is fixed when compiling, and j "
        'has no constant number of iterations\nTry: s.split("j", 128), then bind the inner loop'
    )


def test_a_block_has_at_most_1024_threads() -> None:
    s = tl.schedule(scale)
    i, j = s.loops
    _, ii = s.split(i, 64)
    _, ji = s.split(j, 32)
    s.bind(ji, "thread.x")
    assert refusal(s, ii, "thread.y") == (
        "bind('i.i', 'thread.y') is refused: a block would have 2048 threads in all, and 1024 are "
        'the most\nTry: s.split("i.i", 256), then bind the inner loop'
    )
    t = tl.schedule(scale, N=128)
    assert "128 threads along z, and 64 are the most" in refusal(t, t.loops[1], "thread.z")


def test_grids_are_limited_along_y() -> None:
    s = tl.schedule(scale, M=70_000)
    assert refusal(s, "i", "block.y") == (
        "bind('i', 'block.y') is refused: there would be 70000 blocks along y, and 65535 are the "
        'most\nTry: bind the longest loop to "block.x"'
    )


def test_a_reduction_is_no_loop_of_threads() -> None:
    s = tl.schedule(sums)
    _, ji = s.split("j", 8)
    assert refusal(s, ji, "thread.x") == (
        "bind('j.i', 'thread.x') is refused: bind j.i would let two iterations combine into one "
        'element at once\nTry: j.i runs through a reduction: s.rfactor("j.i") gives each iteration '
        "its own partial result, which may then run in parallel or as vector lanes"
    )


def test_a_loop_is_bound_once() -> None:
    s = tl.schedule(scale)
    s.bind("i", "block.x")
    assert refusal(s, "i", "block.y") == (
        "bind('i', 'block.y') is refused: bind needs a serial loop, and i is block.x\n"
        "Try: bind first, and choose how the resulting loops run afterwards"
    )


def test_threads_do_not_stand_around_blocks_or_inside_parallel_loops() -> None:
    s = tl.schedule(scale, M=8)
    s.parallel("i")
    _, ji = s.split("j", 8)
    assert "j.i stands inside the parallel loop i" in refusal(s, ji, "thread.x")
