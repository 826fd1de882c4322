"""annotate: hints, which change no meaning."""

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, prints, refused, start


def test_program_after():
    s = start("add")
    s.annotate("j", prefetch=2, note="hot", wide=True)
    prints(
        s,
        """
        for i in M:
            for j in N:  # prefetch=2, note=hot, wide=True
                add[i, j] = A[i, j] + B[i, j]
        """,
    )
    s.annotate("j", prefetch=4)
    prints(
        s,
        """
        for i in M:
            for j in N:  # note=hot, wide=True, prefetch=4
                add[i, j] = A[i, j] + B[i, j]
        """,
    )


def test_hints_stay_with_the_loop():
    def steps(s):
        s.annotate("i", hint=1.5)
        s.annotate("j", hint="x")
        s.reorder("j", "i")
        s.parallel("i")
        s.annotate("j", again=0)

    s = accepts("matmul", steps, (0, 1, 3))
    prints(
        s,
        """
        for j in N:  # hint=x, again=0
            parallel for i in M:  # hint=1.5
                for k in K:
                    matmul[i, j] += A[i, k] * B[k, j]
        """,
    )


def test_fused_loops_and_splits():
    def steps(s):
        fused = s.fuse("i", "j")
        s.annotate(fused, a=1)
        s.split(fused, 4)

    accepts("add", steps, (0, 1, 3))


def test_compiled():
    compiles("add", lambda s: s.annotate("i", hint=1))


def test_a_saved_schedule_keeps_them():
    s = start("add")
    s.annotate("j", prefetch=2, note="hot", wide=True, share=0.5)
    assert str(tl.Schedule.from_json(s.to_json())) == str(s)


def test_refused():
    s = start("add")
    refused(
        s,
        lambda: s.annotate("j", hint=[1]),
        """
        annotate('j', hint=[1]) is refused: the hint hint is a list
          AT

            for i in M:
                for j in N:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: a string, a number or a truth value
        """,
    )
    refused(
        s,
        lambda: s.annotate("k", hint=1),
        """
        annotate('k', hint=1) is refused: there is no loop 'k'
          AT

        Try: one of add/i, add/j
        """,
    )
