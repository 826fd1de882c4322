"""Tools for testing one's own operators; they need hypothesis (``pip install hypothesis``).

::

    import tensorlang.testing as tlt
    from hypothesis import given

    @given(tlt.schedules(matmul), tlt.arguments(matmul))
    def test_any_schedule(s, args):
        tlt.assert_close(tl.compile(s)(*args), matmul.reference(*args))
"""

from tensorlang.testing.battery import check
from tensorlang.testing.comparison import assert_close
from tensorlang.testing.random_arguments import Arguments, arguments
from tensorlang.testing.random_schedules import schedules

__all__ = ["Arguments", "arguments", "assert_close", "check", "schedules"]
