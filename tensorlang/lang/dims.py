"""Dims: the sizes that a user names, ``M, N, K = tl.dims("M N K")``.

A dim stands for one non-negative integer, found from the arrays at the call. Dims are compared by
identity: two dims of one name are two sizes, and an operator refuses to use both.
"""

from __future__ import annotations

from typing import Any

from tensorlang.ir.affine import Var
from tensorlang.lang.application import apply
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.values import Index


class DimVar(Var):
    """The variable behind a dim, so that errors can tell sizes from axes."""

    __slots__ = ()


class Dim(Index):
    """A named size. ``n: tl.Dim`` as a keyword parameter is a size that no array fixes.

    Arithmetic (``+ - * // %``) gives further extents, and iterating one inside a comprehension
    gives an axis from 0 to the size - 1.

    Examples
    --------
    >>> import tensorlang as tl
    >>> N = tl.dim("N")
    >>> N // 2 + 1
    N // 2 + 1

    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not name.isidentifier():
            raise definition_error(f"a dim's name must be a Python identifier, not {name!r}")
        super().__init__(DimVar(name))
        self.name = name

    # Python asks the right operand of ``i < N`` first, as Dim is a subclass: turn it around again.

    def __lt__(self, other: object) -> Any:
        return apply("gt", other, self)

    def __le__(self, other: object) -> Any:
        return apply("ge", other, self)

    def __gt__(self, other: object) -> Any:
        return apply("lt", other, self)

    def __ge__(self, other: object) -> Any:
        return apply("le", other, self)

    def __reduce__(self) -> tuple[type[Dim], tuple[str]]:
        return Dim, (self.name,)


def dim(name: str) -> Dim:
    """Return a new dim.

    Examples
    --------
    >>> import tensorlang as tl
    >>> tl.dim("N")
    N

    """
    return Dim(name)


def dims(names: str) -> tuple[Dim, ...]:
    """Return one new dim for each name, always as a tuple.

    Parameters
    ----------
    names
        Identifiers, separated by spaces or commas.

    Raises
    ------
    DefinitionError
        If a name is no identifier or is given twice.

    Examples
    --------
    >>> import tensorlang as tl
    >>> M, N = tl.dims("M N")
    >>> M * N + 1
    M * N + 1

    """
    if not isinstance(names, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise definition_error(f'tl.dims takes names, as in tl.dims("M N"), not {names!r}')
    words = names.replace(",", " ").split()
    if len(set(words)) != len(words):
        raise definition_error(f"a dim is named twice in {names!r}")
    return tuple([Dim(word) for word in words])
