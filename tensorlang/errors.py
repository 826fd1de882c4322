"""The errors that tensorlang raises, and nothing else.

Each is also the builtin that fits, so that code which knows nothing of tensorlang can catch it.
At a call, plain builtins are raised: TypeError for kinds and dtypes, ValueError for sizes and
their conditions, IndexError for indices that depend on data.
"""

from __future__ import annotations


class TensorlangError(Exception):
    """Base class of the errors raised while defining, scheduling or compiling an operator."""


class DefinitionError(TensorlangError, TypeError):
    """A definition that means nothing, reported at the user's own line.

    The usual causes are a Python builtin where tensorlang's function was meant (``sum`` for
    ``tl.sum``), an ``if`` inside a comprehension (write ``tl.where``), an index of the wrong
    rank, and an index that leaves its tensor.
    """


class ScheduleError(TensorlangError, ValueError):
    """A scheduling step that would change what the operator computes, or that cannot be proved.

    The message holds the claim that failed, the loop nest with the place marked, a concrete
    counterexample where there is one, and what to try instead. The schedule is left as it was.
    """


class CompileError(TensorlangError, ValueError):
    """A program that the chosen target cannot run, with the reason and a way out."""
