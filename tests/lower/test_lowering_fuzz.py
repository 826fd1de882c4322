"""Random schedules of small operators: every pass must leave the results as they are."""

from __future__ import annotations

import lower_builder as build
import lower_running as running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorlang.dtypes import f32, f64, i32, i64

FACTORS = st.sampled_from([1, 2, 3, 4, 6, 8])
TAILS = st.sampled_from(["auto", "auto", "guard", "peel", "mask"])
SIZES = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13])
DTYPES = st.sampled_from([f32, f64, i32, i64])

thorough = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@st.composite
def matmul_schedules(draw) -> build.Schedule:
    s = build.Schedule(build.matmul(draw(DTYPES)))
    i, j, k = s.loops()
    ti, tj, tk = draw(FACTORS), draw(FACTORS), draw(FACTORS)
    io, ii = s.split(i, ti, draw(TAILS))
    jo, ji = s.split(j, tj, draw(TAILS))
    ko, ki = s.split(k, tk, draw(TAILS))
    outer = draw(st.permutations([io, jo, ko]))
    inner = draw(st.permutations([ii, ji, ki]))
    s.reorder(*outer, *inner)
    A, B = s.program.definition.inputs
    (C,) = s.program.definition.outputs
    if draw(st.booleans()):
        s.accumulate(C, outer[-1], draw(st.sampled_from(["local", "global"])), copy_in=True)
    if draw(st.booleans()):
        s.cache_read(B, draw(st.sampled_from([*outer])))
    if draw(st.booleans()):
        s.cache_read(A, outer[-1], "local")
    for loop in (ii, ji, ki):
        if draw(st.booleans()):
            s.kind(loop, "unrolled")
    data = [loop for loop in inner if loop is not ki]
    if draw(st.booleans()):
        s.kind(draw(st.sampled_from(data)), "vectorized")
    if outer[0] is not ko and draw(st.booleans()):
        s.kind(outer[0], "parallel")
        if outer[1] is not ko and draw(st.booleans()):
            s.kind(outer[1], "parallel")
    elif outer[1] in s.loops("C") and outer[0] in s.loops("C"):
        pair = outer[:2]
        adjacent = build.directly_nested(s.program.body, *pair)
        if adjacent and draw(st.booleans()):
            s.fuse(*pair)
            if draw(st.booleans()):
                s.split_fused(pair[0], draw(FACTORS))
    return s


@given(matmul_schedules(), SIZES, SIZES, SIZES)
@thorough
def test_matmul(schedule, m, n, k):
    running.check_every_pass(schedule.program, m, k, n)


@st.composite
def blur_schedules(draw) -> build.Schedule:
    s = build.Schedule(build.blur(draw(DTYPES)))
    (i,) = s.loops("Y")
    io, ii = s.split(i, draw(FACTORS), draw(TAILS))
    if draw(st.booleans()):
        s.compute_at("H", io, draw(st.sampled_from(["local", "global"])))
    (h, *_) = s.loops("H")[-1:]
    if draw(st.booleans()):
        _, hi = s.split(h, draw(FACTORS), draw(TAILS))
        s.kind(hi, draw(st.sampled_from(["vectorized", "unrolled", "serial"])))
    s.kind(ii, draw(st.sampled_from(["vectorized", "unrolled", "serial"])))
    s.kind(io, draw(st.sampled_from(["parallel", "serial"])))
    return s


@given(blur_schedules(), SIZES)
@thorough
def test_two_stages(schedule, n):
    running.check_every_pass(schedule.program, n)


@st.composite
def row_schedules(draw) -> build.Schedule:
    definition = draw(
        st.sampled_from(
            [
                build.row_sum,
                build.triangle,
                build.band,
                build.softmax_like,
                build.argmax,
                build.running_sum,
            ]
        )
    )(draw(st.sampled_from([f32, f64])))
    s = build.Schedule(definition)
    last = definition.stages[-1]
    i, j = s.loops(last.name)
    if definition.name == "center" and draw(st.booleans()):
        s.compute_at("top", i)
    io, ii = s.split(i, draw(FACTORS), draw(TAILS))
    if draw(st.booleans()):
        _, ji = s.split(j, draw(FACTORS), draw(TAILS))
        if draw(st.booleans()):
            s.kind(ji, "unrolled")
    s.kind(ii, draw(st.sampled_from(["unrolled", "serial"])))
    fusable = build.directly_nested(s.program.body, io, ii)
    if fusable and draw(st.booleans()):
        s.kind(ii, "serial")
        s.fuse(io, ii)
        if draw(st.booleans()):
            s.split_fused(io, draw(FACTORS))
    elif definition.name in ("row_sum", "triangle", "band", "argmax", "running_sum") and draw(
        st.booleans()
    ):
        s.kind(ii, "vectorized")
    return s


@given(row_schedules(), SIZES, SIZES)
@thorough
def test_rows(schedule, m, n):
    running.check_every_pass(schedule.program, m, n)
