"""Make one mistake in one function of the package, for a while.

Input:  ``Mutation("...", "tensorlang.lower.unroll:_Unroller.visit", "range(n)", "range(n - 1)")``
Output: inside ``with applied(mutation):`` every caller runs the wrong function

The function's source is changed and compiled again, and the new code put in the place of the old,
in closures that were made already too. A text that is not found exactly once is an error, so that
no mutation goes stale unseen.
"""

from __future__ import annotations
import __future__

import gc
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from tensorlang.driver import kept


@dataclass(frozen=True)
class Mutation:
    """A mistake: in ``function`` (``module:qualified.name``), ``before`` becomes ``after``."""

    mistake: str
    function: str
    before: str
    after: str
    cases: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.mistake.replace(" ", "-")


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Run the ``with`` body with the mistake made."""
    pairs = [
        (function, old, new) for old, new in _codes(mutation) for function in _functions_of(old)
    ]
    assert pairs, f"nothing runs the code of {mutation.function}"
    # what a mistake compiles is kept for nobody, nor is what was compiled without it used
    find_store, kept.the_store = kept.the_store, lambda: None
    for function, _, new in pairs:
        function.__code__ = new
    try:
        yield
    finally:
        kept.the_store = find_store
        for function, old, _ in pairs:
            function.__code__ = old


def _codes(mutation: Mutation) -> list[tuple[CodeType, CodeType]]:
    """Return the code of the function and of those inside it: the present one and the wrong one."""
    module_name, _, path = mutation.function.partition(":")
    module = import_module(module_name)
    function: Any = module
    for part in path.split("."):
        function = inspect.getattr_static(function, part)
    source = textwrap.dedent(inspect.getsource(function))
    found = source.count(mutation.before)
    assert found == 1, f"{mutation.before!r} stands {found} times in {mutation.function}"
    flags = __future__.annotations.compiler_flag
    wrong = source.replace(mutation.before, mutation.after)
    compiled = compile(wrong, f"<mutation: {mutation.mistake}>", "exec", flags, dont_inherit=True)
    return list(_matching(function.__code__, _named(compiled, function.__code__.co_name)))


def _named(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _matching(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    for one, other in zip(*inner, strict=False):
        if one.co_name == other.co_name and one.co_freevars == other.co_freevars:
            yield from _matching(one, other)


def _functions_of(code: CodeType) -> list[FunctionType]:
    return [f for f in gc.get_referrers(code) if isinstance(f, FunctionType) and f.__code__ is code]
