"""assume: conditions on sizes, relied on by later steps and checked at each call."""

import numpy as np
import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, refused, start
from tests.schedule.operators import M, N, add, double


def test_a_multiple_makes_guards_unnecessary():
    s = start("double")
    s.assume(N % 8 == 0)
    s.split("i", 8)
    assert "if" not in str(s)
    s = start("double")
    s.assume(N % 24 == 0)
    s.split("i", 8)
    assert "if" not in str(s)
    s = start("double")
    s.assume(N % 4 == 0)
    s.split("i", 8)
    assert "if" in str(s)


@pytest.mark.parametrize("text", ["N % 8 == 0", "N >= 2", "N - 2 >= 0", "N == 8", "N % 8 >= 0"])
def test_conditions_as_text(text):
    accepts("double", lambda s: (s.assume(text), s.split("i", 8)))


def test_conditions_are_recorded():
    s = tl.schedule(add)
    s.assume(N % 8 == 0)
    s.assume(M >= N)
    s.assume(M * 2 == N + 1)
    assert [condition.message for condition in s.program.conditions] == [
        "the schedule assumes N % 8 == 0",
        "the schedule assumes M - N >= 0",
        "the schedule assumes 2 * M - N - 1 == 0",
    ]
    assert [str(step) for step in s.trace] == [
        "assume('N % 8 == 0')",
        "assume('M - N >= 0')",
        "assume('2 * M - N - 1 == 0')",
    ]


def test_a_call_checks_them():
    s = tl.schedule(double)
    s.assume(N % 4 == 0)
    s.split("i", 4)
    function = tl.compile(s)
    np.testing.assert_array_equal(function(np.ones(8, np.float32)), np.full(8, 2, np.float32))
    with pytest.raises(ValueError, match="the schedule assumes N % 4 == 0"):
        function(np.ones(7, np.float32))


def test_refused():
    other = tl.dim("Q")
    s = start("double")
    refused(
        s,
        lambda: s.assume(other % 8 == 0),
        """
        assume(...) is refused: Q is no size of double
          AT

        Try: a condition on its sizes: N
        """,
    )
    refused(
        s,
        lambda: s.assume(True),
        """
        assume(...) is refused: True is no condition on sizes
          AT

        Try: s.assume(N % 8 == 0), s.assume(M >= 16)
        """,
    )
    refused(
        s,
        lambda: s.assume(N != 3),
        """
        assume(...) is refused: N != 3 is no condition on sizes
          AT

        Try: s.assume(N % 8 == 0), s.assume(M >= 16)
        """,
    )
    refused(
        s,
        lambda: s.assume("N mod 8 == 0"),
        """
        assume(...) is refused: 'N mod 8' is no index expression
          AT

        Try: s.assume("N % 8 == 0")
        """,
    )
    refused(
        s,
        lambda: s.assume("N"),
        """
        assume(...) is refused: 'N' is no condition
          AT

        Try: s.assume("N % 8 == 0"), s.assume("M >= 16")
        """,
    )
    refused(
        s,
        lambda: s.assume("Q >= 0"),
        """
        assume(...) is refused: 'Q' in 'Q' is not understood; names: N; operators: + - * // %
          AT

        Try: s.assume("N % 8 == 0")
        """,
    )
    refused(
        s,
        lambda: s.assume("4 == 5"),
        """
        assume(...) is refused: 4 == 5 never holds
          AT

        Try: a condition that some sizes meet
        """,
    )


def test_refused_with_fixed_sizes():
    s = start("double", N=8)
    refused(
        s,
        lambda: s.assume(N % 8 == 0),
        """
        assume(...) is refused: N is no size of double
          AT

        Try: a condition on its sizes: none that are symbolic
        """,
    )
