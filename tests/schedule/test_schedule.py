"""The session: handles, paths, stale loops, undo, fork, the trace and what it is saved as."""

# ruff: noqa: E501 - printed programs

import json

import numpy as np
import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, check, prints, refused, start
from tests.schedule.operators import (
    BY_NAME,
    M,
    N,
    add,
    blur,
    double,
    matmul,
    matmul_bias,
    row_sum,
    softmax,
)

# --- handles and paths -----------------------------------------------------------------------


def test_loops_of_the_output_and_of_stages():
    s = tl.schedule(softmax)
    assert [loop.name for loop in s.loops] == ["i", "j"]
    assert [loop.name for loop in s["top"].loops] == ["i", "j"]
    assert [loop.extent for loop in s["top"].loops] == ["M", "N"]
    assert [stage.name for stage in s.stages] == ["top", "e", "total", "softmax"]
    assert repr(s["top"]) == "Stage(top)"
    assert repr(s.loops[0]) == "Loop(i: M)"
    assert repr(s) == "<Schedule of softmax, 0 steps>"


def test_handles_are_equal_if_they_are_one_loop():
    s = tl.schedule(add)
    assert s.loops[0] == s.loops[0]
    assert s.loops[0] != s.loops[1]
    assert len({*s.loops, *s.loops}) == 2
    assert s.loops[0] != "i"


def test_a_handle_follows_its_loop():
    s = tl.schedule(matmul)
    i, j, k = s.loops
    s.reorder(k, i, j)
    s.unroll(j, factor=2)
    assert (i.name, i.extent, i.kind) == ("i", "M", "serial")
    assert (j.extent, j.kind) == ("gone", "gone")
    assert s.loops[0] == k


def test_paths_are_read_from_the_right():
    s = tl.schedule(softmax)
    s.split("softmax/i", 4)
    s.split("i.o", 2)
    assert [loop.name for loop in s.loops] == ["i.o.o", "i.o.i", "i.i", "j"]
    refused(
        s,
        lambda: s.split("j", 4),
        """
        split('j', 4) is refused: 'j' names 4 loops
          AT

        Try: one of 'top/j', 'e/j', 'total/j', 'softmax/j'
        """,
    )
    refused(
        s,
        lambda: s.split("q", 4),
        """
        split('q', 4) is refused: there is no loop 'q'
          AT

        Try: one of top/i, top/j, e/i, e/j, total/i, total/j, softmax/i.o.o, softmax/i.o.i, softmax/i.i, softmax/j
        """,
    )


def test_equal_paths_are_numbered():
    s = tl.schedule(double)
    s.peel(s.split("i", 4)[0])
    refused(
        s,
        lambda: s.unroll("i.i"),
        """
        unroll('i.i') is refused: 'i.i' names 2 loops
          AT

        Try: one of 'double/i.i#1', 'double/i.i#2'
        """,
    )
    s.unroll("double/i.i#2")
    prints(
        s,
        """
        for i.o in N // 4:
            for i.i in 4:
                double[4 * i.o + i.i] = x[4 * i.o + i.i] * 2
        for i.o.rest in -(N // 4) + (N + 3) // 4:
            unrolled for i.i in 4:
                double[4 * i.o.rest + i.i + 4 * (N // 4)] = x[4 * i.o.rest + i.i + 4 * (N // 4)] * 2  # if 4 * i.o.rest + i.i + 4 * (N // 4) < N
        """,
    )


def test_names_of_stages_and_tensors():
    s = tl.schedule(matmul_bias)
    assert s["matmul_bias"].name == "matmul_bias"
    s.cache_write("C", at="C/i", scope="global")
    assert s["C.write"].name == "C.write"
    with pytest.raises(
        tl.ScheduleError, match=r"there is no stage 'D'\n.*\n\nTry: one of C, matmul_bias, C.write"
    ):
        s["D"]
    refused(
        s,
        lambda: s.compute_inline("D"),
        """
        compute_inline('D') is refused: there is no stage 'D'
          AT

        Try: one of C, matmul_bias, C.write
        """,
    )
    refused(
        s,
        lambda: s.compute_inline(s.loops[0]),
        """
        compute_inline('i') is refused: Loop(i: M) is no stage
          AT

        Try: a name, or a handle such as s["C"]
        """,
    )
    refused(
        s,
        lambda: s.cache_read(3, at="C/i"),
        """
        cache_read(3, at='C/i') is refused: 3 is no tensor
          AT

        Try: the name of an input or a stage, such as "B"
        """,
    )


def test_inlined_operators_have_paths_of_their_own():
    @tl.compute
    def twice(X: tl.f32[M, N]):
        first = softmax(X)
        return softmax(first)

    s = tl.schedule(twice)
    names = [stage.name for stage in s.stages]
    assert len(names) == len(set(names))
    for name in names:
        assert s[name].loops
    with pytest.raises(tl.ScheduleError, match="names several stages"):
        s["total"]


def test_several_outputs():
    s = start("two_outputs")
    assert [loop.name for loop in s["plus"].loops] == ["i", "j"]
    with pytest.raises(tl.ScheduleError) as caught:
        _ = s.loops
    assert "two_outputs has several output stages" in str(caught.value)
    assert 'Try: s["plus"].loops, s["minus"].loops' in str(caught.value)

    def steps(s):
        s.split("plus/i", 4)
        s.fuse("minus/i", "minus/j")
        s.parallel("plus/i.o")

    accepts("two_outputs", steps, (0, 1, 4, 5))


# --- stale handles ---------------------------------------------------------------------------


def test_a_stale_handle_names_the_step_that_took_the_loop():
    s = tl.schedule(add)
    i, j = s.loops
    s.split(i, 4)
    split_line = _line() - 1
    with pytest.raises(tl.ScheduleError) as caught:
        s.parallel(i)
    text = str(caught.value)
    assert text.startswith(
        f"parallel('i') is refused: i is gone: split('i', 4) at {__file__}:{split_line} replaced it, "
        "which made i.o, i.i\n"
    )
    assert text.endswith("Try: one of add/i.o, add/i.i, add/j")
    s.fuse("i.i", j)
    with pytest.raises(
        tl.ScheduleError, match=r"j is gone: fuse\('i.i', 'j'\) at .*, which made i.i.j"
    ):
        s.vectorize(j)


def test_a_stale_loop_of_a_moved_stage():
    s = tl.schedule(blur)
    i, _ = s["rows"].loops
    s.compute_at("rows", "blur/i")
    with pytest.raises(
        tl.ScheduleError, match=r"i is gone: compute_at\('rows', 'blur/i'\) at .*replaced it\n"
    ):
        s.split(i, 4)


def test_undo_brings_handles_back():
    s = tl.schedule(add)
    i, _ = s.loops
    s.split(i, 4)
    s.undo()
    s.split(i, 8)
    assert [str(step) for step in s.trace] == ["split('i', 8)"]
    prints(
        s,
        """
        for i.o in (M + 7) // 8:
            for i.i in 8:
                for j in N:
                    add[8 * i.o + i.i, j] = A[8 * i.o + i.i, j] + B[8 * i.o + i.i, j]  # if 8 * i.o + i.i < M
        """,
    )


def _line() -> int:
    import sys

    return sys._getframe(1).f_lineno


# --- undo, fork, the trace -------------------------------------------------------------------


def test_undo_takes_back_one_step_at_a_time():
    s = tl.schedule(add)
    texts = [str(s)]
    for step in (
        lambda: s.split("i", 4),
        lambda: s.unroll("j", factor=3),
        lambda: s.parallel("i.o"),
    ):
        step()
        texts.append(str(s))
    for text in reversed(texts[:-1]):
        s.undo()
        assert str(s) == text
    refused(
        s,
        lambda: s.undo(),
        """
        undo() is refused: there is no step to take back
          AT
        """,
    )


def test_forks_go_on_by_themselves():
    s = tl.schedule(add)
    i, j = s.loops
    s.split(i, 4)
    other = s.fork()
    assert str(other) == str(s)
    other.split(j, 2)
    s.undo()
    s.parallel(i)
    prints(
        s,
        """
        parallel for i in M:
            for j in N:
                add[i, j] = A[i, j] + B[i, j]
        """,
    )
    prints(
        other,
        """
        for i.o in (M + 3) // 4:
            for i.i in 4:
                for j.o in (N + 1) // 2:
                    for j.i in 2:
                        add[4 * i.o + i.i, 2 * j.o + j.i] = A[4 * i.o + i.i, 2 * j.o + j.i] + B[4 * i.o + i.i, 2 * j.o + j.i]  # if 4 * i.o + i.i < M and 2 * j.o + j.i < N
        """,
    )
    with pytest.raises(tl.ScheduleError, match="i is gone"):
        other.split(i, 2)
    check(BY_NAME["add"], s, (0, 3))
    check(BY_NAME["add"], other, (0, 3))


def test_the_trace_names_everything_by_text():
    s = tl.schedule(matmul)
    i, j, k = s.loops
    io, ii = s.split(i, 4, tail="guard")
    s.reorder(io, j, k, ii)
    copy = s.cache_read("A", at=io)
    s.layout(copy, lambda a, b: (b, a))
    s.cache_write("matmul", at=io, scope="global")
    s.annotate(k, hint="x")
    assert [str(step) for step in s.trace] == [
        "split('i', 4, tail='guard')",
        "reorder('i.o', 'j', 'k', 'i.i')",
        "cache_read('A', at='i.o')",
        "layout('A.local', lambda a, b: (b, a,))",
        "cache_write('matmul', at='i.o', scope='global')",
        "annotate('k', hint='x')",
    ]
    assert [step.results for step in s.trace[:3]] == [("i.o", "i.i"), (), ("A.local",)]
    assert all(step.location.file == __file__ for step in s.trace)
    assert not any(step.by_rule for step in s.trace)
    assert s.is_hand_written


def test_an_untouched_or_default_schedule_is_not_hand_written():
    assert not tl.schedule(matmul).is_hand_written
    s = tl.schedule(matmul).default()
    assert not s.is_hand_written
    assert s.trace
    assert all(step.by_rule for step in s.trace)
    s.annotate(s.loops[0], hint=1)
    assert s.is_hand_written
    refused(
        s,
        lambda: s.default(),
        """
        default() is refused: the schedule has steps already
          AT

        Try: tl.schedule(op).default()
        """,
    )


def test_verify_refuses_what_it_cannot_prove(monkeypatch):
    """Should a step ever be taken wrongly, the proof of the whole still says no."""
    from tensorlang.schedule.primitives.parallel import Parallel

    monkeypatch.setattr(Parallel, "check", lambda self, program: None)
    s = tl.schedule(row_sum)
    s.parallel("j")
    refused(
        s,
        lambda: s.verify(),
        """
        verify() is refused: the program does not provably compute row_sum: concurrency
          AT

        Counterexample: two iterations of parallel loop j touch one element of row_sum
        sizes:  M = 1, N = 2
        loops:  i = 0, j = 0, j' = 1
                the update row_sum[i=0, j=0] writes row_sum[0]
                the update row_sum[i=0, j=1] writes row_sum[0]
        in:     row_sum[i] += x[i, j]

        Try: s.undo() takes back the last step
        """,
    )


# --- saved schedules -------------------------------------------------------------------------

MANY_STEPS = {
    "matmul": lambda s: (
        s.tile(["i", "j"], [4, 8]),
        s.reorder("i.o", "j.o", "k", "i.i", "j.i"),
        s.assume("K % 4 == 0"),
        s.split("k", 4, tail="exact"),
        s.parallel("i.o"),
        s.unroll("k.i"),
        s.vectorize("j.i"),
        s.cache_read("B", at="j.o"),
        s.layout("B.local", lambda k, n: (n // 4, k, n % 4)),
        s.cache_write("matmul", at="j.o", scope="global"),
        s.unroll("matmul.write/j", factor=2),
        s.annotate("k.o", hint=True),
    ),
    "softmax": lambda s: (
        s.compute_inline("e"),
        s.rfactor(s.split("total/j", 4)[1]),
        s.split("total.rf/j.o", 2),
        s.decompose_reduction("top", "top/j"),
        s.peel(s.split("softmax/j", 4)[0]),
    ),
    "two_outputs": lambda s: (
        s.fuse("plus/i", "plus/j"),
        s.reverse_compute_at("minus", "shared/i"),
    ),
    "blur": lambda s: (
        s.compute_at("rows", "blur/i"),
        s.compute_root("rows"),
        s.split(s.fuse("blur/i", "blur/j"), 4),
    ),
    "argmax": lambda s: (
        s.cache_write("argmax", at=s.split("i", 4)[0], scope="global"),
        s.split("argmax.write/i", 2),
    ),
}


@pytest.mark.parametrize("name", MANY_STEPS)
def test_json_and_python_rebuild_a_schedule(name):
    s = start(name)
    MANY_STEPS[name](s)
    again = tl.Schedule.from_json(s.to_json())
    assert again.to_json() == tl.Schedule.from_json(again.to_json()).to_json()
    assert _unordered(str(again)) == _unordered(str(s))
    assert [str(step) for step in again.trace] == [str(step) for step in s.trace]
    scope = {"tl": tl, name: BY_NAME[name].operator}
    exec(s.to_python(), scope)
    assert str(scope["s"]) == str(s)
    check(BY_NAME[name], again, (0, 1, 4, 8))


def _unordered(text: str) -> str:
    """Sizes are read back in another order, and so products of them."""
    return text.replace("N * M", "M * N").replace("W * H", "H * W")


def test_python_of_fixed_sizes_and_attributes():
    case = BY_NAME["conv2d_stride2_pad0"]
    s = case.schedule(R=3, S=3)
    s.unroll("r")
    assert s.to_python() == "\n".join(
        ["s = tl.schedule(conv2d, stride=2, pad=0, R=3, S=3)", "s.unroll('r')"]
    )
    scope = {"tl": tl, "conv2d": case.operator}
    exec(s.to_python(), scope)
    assert str(scope["s"]) == str(s)
    assert str(tl.Schedule.from_json(s.to_json())) == str(s)


def test_to_python_of_a_default_schedule():
    s = tl.schedule(row_sum).default()
    scope = {"tl": tl, "row_sum": row_sum}
    exec(s.to_python(), scope)
    assert str(scope["s"]) == str(s)


# --- hostile documents -----------------------------------------------------------------------


def document(**changes) -> str:
    s = tl.schedule(double)
    s.split("i", 8)
    return json.dumps({**json.loads(s.to_json()), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "[]", "3", '"text"', "{}", "[" * 100_000, '{"a":' * 50_000,
        document(tensorlang_schedule=99), document(tensorlang_schedule=None),
        document(definition=None), document(definition={}), document(definition=[1]),
        document(definition={"name": "x"}), document(fixed=3), document(fixed=[["N", 8]]),
        document(steps=3), document(steps={"split": 1}), document(steps=[None]), document(steps=["split"]),
        document(steps=[{}]), document(steps=[{"name": 3, "arguments": []}]),
        document(steps=[{"name": "split", "arguments": {"loop": "i"}}]),
        document(steps=[{"name": "split", "arguments": [{"a": 1}, 2]}]),
        document(steps=[{"name": "split", "arguments": ["i", 2], "keywords": ["tail"]}]),
        document(steps=[{"name": "layout", "arguments": ["x", {"layout": 3}]}]),
        document(steps=[{"name": "layout", "arguments": ["x", {"layout": {}}]}]),
        document(steps=[{"name": "layout", "arguments": ["x", {"layout": {"variables": 1, "indices": 2}}]}]),
    ],
    ids=lambda text: text[-60:],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(tl.ScheduleError, match="this is no saved schedule"):
        tl.Schedule.from_json(text)


@pytest.mark.parametrize(
    "step",
    [
        {"name": "verify", "arguments": []},
        {"name": "to_json", "arguments": []},
        {"name": "__init__", "arguments": []},
        {"name": "_take", "arguments": []},
        {"name": "default", "arguments": []},
        {"name": "undo", "arguments": []},
        {"name": "split", "arguments": []},
        {"name": "split", "arguments": ["i", 8, "auto", 3]},
        {"name": "split", "arguments": ["i", 8], "keywords": {"factor": 3}},
        {"name": "split", "arguments": ["i", 8], "keywords": {"self": 3}},
        {"name": "split", "arguments": ["i", "8"]},
        {"name": "split", "arguments": ["i", None]},
        {"name": "split", "arguments": ["i", [8]]},
        {"name": "split", "arguments": [None, 8]},
        {"name": "split", "arguments": [["i"], 8]},
        {"name": "split", "arguments": ["i", 8], "keywords": {"tail": ["auto"]}},
        {"name": "split", "arguments": ["i", 1e300]},
        {"name": "tile", "arguments": ["i", 8]},
        {"name": "tile", "arguments": [["i"], ["8"]]},
        {"name": "tile", "arguments": [3, 4]},
        {"name": "unroll", "arguments": ["i"], "keywords": {"factor": "2"}},
        {"name": "fuse", "arguments": []},
        {"name": "reorder", "arguments": []},
        {"name": "reorder", "arguments": [[]]},
        {"name": "compute_at", "arguments": [3, 4]},
        {"name": "cache_read", "arguments": ["x"], "keywords": {"at": 3}},
        {"name": "cache_read", "arguments": ["x"], "keywords": {"at": "i", "scope": ["local"]}},
        {"name": "cache_read", "arguments": ["x"], "keywords": {"at": "i", "scope": 3}},
        {"name": "cache_write", "arguments": ["double"]},
        {"name": "assume", "arguments": [3]},
        {"name": "assume", "arguments": [None]},
        {"name": "assume", "arguments": ["N ** 3 >= 0"]},
        {"name": "assume", "arguments": ["__import__('os').system('false') >= 0"]},
        {"name": "assume", "arguments": ["(" * 10_000 + ">= 0"]},
        {"name": "layout", "arguments": ["x", "lambda i: i"]},
        {"name": "layout", "arguments": ["double", 3]},
        {"name": "annotate", "arguments": ["i"], "keywords": {"hint": None}},
        {"name": "annotate", "arguments": ["i"], "keywords": {"hint": [1, 2]}},
        {"name": "annotate", "arguments": ["i"], "keywords": {"loop": 1}},
    ],
    ids=str,
)
def test_steps_that_do_not_fit_are_refused(step):
    with pytest.raises(tl.ScheduleError):
        tl.Schedule.from_json(document(steps=[step]))


def test_layouts_are_read_and_never_executed(tmp_path):
    """Whatever stands in a document, nothing of it runs."""
    s = tl.schedule(blur)
    s.layout("rows", lambda i, j: (j, i))
    saved = json.loads(s.to_json())
    target = tmp_path / "executed"
    attacks = [
        f"__import__('pathlib').Path({str(target)!r}).touch()",
        f"open({str(target)!r}, 'w')",
        "(lambda: 0)()", "i.__class__", "[i for i in (1,)]", "i if j else j", "i := 3", "f'{i}'", "i, j",
        "i ** j", "i / 2", "i @ j", "1e9", "'i'", "i // 0", "i % 0", "k", "min()", "min(i, j, key=i)",
        "*i", "(" * 5_000 + "i" + ")" * 5_000, "i\x00", "i;j", "",
    ]  # fmt: skip
    for attack in attacks:
        saved["steps"] = [
            {
                "name": "layout",
                "arguments": [
                    "rows",
                    {"layout": {"variables": ["i", "j"], "indices": [attack, "i"]}},
                ],
            }
        ]
        with pytest.raises(tl.ScheduleError):
            tl.Schedule.from_json(json.dumps(saved))
        assert not target.exists()


def test_many_steps():
    s = tl.schedule(double)
    steps = [{"name": "annotate", "arguments": ["i"], "keywords": {"hint": n}} for n in range(300)]
    again = tl.Schedule.from_json(document(steps=steps))
    assert len(again.trace) == 300
    assert str(again) == str(s).replace("in N:", "in N:  # hint=299")


def test_a_damaged_definition_is_refused():
    saved = json.loads(tl.schedule(matmul).to_json())
    text = json.dumps(saved["definition"])
    for old, new in (('"f32"', '"f33"'), ('"mul"', '"system"'), ('"sum"', "3"), ('"i"', "null")):
        damaged = {**saved, "definition": json.loads(text.replace(old, new))}
        if damaged["definition"] == saved["definition"]:
            continue
        with pytest.raises(tl.ScheduleError, match="this is no saved schedule"):
            tl.Schedule.from_json(json.dumps(damaged))


# --- replay ----------------------------------------------------------------------------------


def test_replay_on_other_sizes():
    s = tl.schedule(matmul)
    s.vectorize(s.split("j", 8)[1])
    fixed = s.replay(M=5, N=16, K=3)
    prints(
        fixed,
        """
        for i in 5:
            for j.o in 2:
                vectorized for j.i in 8:
                    for k in 3:
                        matmul[i, 8 * j.o + j.i] += A[i, k] * B[k, 8 * j.o + j.i]
        """,
    )
    check(BY_NAME["matmul"], fixed, ({},))
    assert str(tl.schedule(matmul, N=16).replay()) == str(tl.schedule(matmul))


def test_replay_on_another_operator():
    @tl.compute
    def subtract(A: tl.f64[M, N], B: tl.f64[M, N]):
        return tl.tensor(A[i, j] - B[i, j] for i in M for j in N)

    s = tl.schedule(add)
    s.tile(["i", "j"], [4, 8])
    s.parallel("i.o")
    other = s.replay(subtract)
    prints(
        other,
        """
        parallel for i.o in (M + 3) // 4:
            for j.o in (N + 7) // 8:
                for i.i in 4:
                    for j.i in 8:
                        subtract[4 * i.o + i.i, 8 * j.o + j.i] = A[4 * i.o + i.i, 8 * j.o + j.i] - B[4 * i.o + i.i, 8 * j.o + j.i]  # if 4 * i.o + i.i < M and 8 * j.o + j.i < N
        """,
    )
    a, b = np.ones((2, 3, 5))
    np.testing.assert_array_equal(tl.compile(other)(a, b), a - b)


def test_replay_where_a_step_does_not_fit():
    s = tl.schedule(add)
    s.split("i", 4)
    with pytest.raises(tl.ScheduleError, match="'i' names 4 loops"):
        s.replay(softmax)
    s = tl.schedule(double, N=16)
    s.split("i", 8, tail="exact")
    with pytest.raises(tl.ScheduleError, match="8 does not divide the extent 20 of i"):
        s.replay(N=20)


def test_replay_of_a_saved_schedule():
    s = tl.schedule(double)
    s.split("i", 8)
    again = tl.Schedule.from_json(s.to_json()).replay(N=16)
    prints(
        again,
        """
        for i.o in 2:
            for i.i in 8:
                double[8 * i.o + i.i] = x[8 * i.o + i.i] * 2
        """,
    )


def test_parameters_and_operators_are_no_stages():
    s = tl.schedule(softmax)
    with pytest.raises(
        tl.ScheduleError,
        match=r"X is a parameter, which no stage makes\n.*\n\nTry: s\.cache_read\(\"X\", at=",
    ):
        s.compute_at("X", s.loops[0])
    with pytest.raises(tl.ScheduleError, match=r"is no stage's name\n.*\n\nTry: s\[\"top\"\], s"):
        s[softmax]
    with pytest.raises(TypeError, match=r"tl\.schedule takes an operator .*, found int"):
        tl.schedule(3)


def test_steps_print_as_they_are_written():
    s = tl.schedule(double)
    s.split("i", 8)
    s.parallel("i.o")
    assert repr(s.trace) == "(<split('i', 8) -> i.o, i.i>, <parallel('i.o')>)"


def test_advice_names_loops_by_paths_that_are_unique():
    s = tl.schedule(softmax)
    with pytest.raises(tl.ScheduleError, match=r'outer, inner = s\.split\("e/j", 16\)'):
        s.vectorize("e/j")
    with pytest.raises(tl.ScheduleError, match=r's\.rfactor\("total/j"\) gives'):
        s.parallel("total/j")


def with_nodes(change) -> str:
    """The document of matmul without steps, with ``change`` made to its nodes."""
    saved = json.loads(tl.schedule(matmul).to_json())
    change(saved["definition"], saved["definition"]["nodes"])
    return json.dumps(saved)


def test_indices_that_nobody_traced_are_proved_also_without_steps():
    """A definition from a text has not been through the checks of one that was traced."""

    def read_far_away(definition, nodes):
        load = next(node for node in nodes if node[0] == "load")
        load[2][0][0] = -1_000_000

    s = tl.Schedule.from_json(with_nodes(read_far_away))
    with pytest.raises(tl.ScheduleError, match="bounds"):
        tl.compile(s)
    tl.compile(tl.Schedule.from_json(with_nodes(lambda definition, nodes: None)))


@pytest.mark.parametrize(
    "change",
    [
        lambda definition, nodes: definition["outputs"].__setitem__(0, 0),
        lambda definition, nodes: definition["conditions"].append([[0, [[3, 1]]], "i", False]),
        lambda definition, nodes: definition["stages"][0]["tensors"][0][1].__setitem__(
            0, [0, [[3, 1]]]
        ),
        lambda definition, nodes: definition["dims"].append(3),
        lambda definition, nodes: definition["stages"][0]["axes"].pop(),
        lambda definition, nodes: definition["stages"][0]["values"].append(0),
    ],
)
def test_a_definition_of_the_wrong_form_is_refused(change):
    with pytest.raises(tl.ScheduleError, match="this is no saved schedule"):
        tl.Schedule.from_json(with_nodes(change))


def test_attributes_come_back_from_json():
    @tl.compute
    def scaled(x: tl.f32[N], *, by: object = None):
        return tl.tensor(x[i] * 2 for i in N)

    for value in (None, True, 1, 1.5, -0.0, "s", (1, 2), ((1, (2, "x")), 3), np.float32(2), tl.f64):
        s = tl.schedule(scaled, by=value)
        again = tl.Schedule.from_json(s.to_json())
        assert repr(again.definition.attributes) == repr(s.definition.attributes)
        assert again.to_json() == s.to_json()
    for value in (b"x", 1j, object(), (1, ...)):
        with pytest.raises(
            tl.ScheduleError, match="scaled: the attribute by cannot be saved as JSON"
        ):
            tl.schedule(scaled, by=value).to_json()


def test_depth_is_no_matter():
    depth = 3_000

    @tl.compute
    def deep(x: tl.f32[N]):
        def value(i):
            e = x[i]
            for _ in range(depth):
                e = e * 0.5 + 1.0
            return e

        return tl.tensor(value(i) for i in N)

    s = tl.schedule(deep)
    s.split("i", 4)
    again = tl.Schedule.from_json(s.to_json())
    assert again.to_json() == s.to_json()
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(tl.compile(again)(x), np.full(5, 2, np.float32))
