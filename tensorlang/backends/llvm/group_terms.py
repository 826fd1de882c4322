"""The terms of an index by what moves in them, sizes put outside the brackets.

Input:  ``M * N * i + M * i - N * j + M * N``, where M and N are sizes
Output: ``(i,): M * N + M``, ``(j,): -N``, ``(): M * N``

Index expressions are sums of products, so that the distance of two planes, ``(H + 2) * (W + 2)``,
is multiplied out; the place of an element in five dimensions has more than a hundred terms. What
the sizes say is computed once for all places, and one product is left for each variable.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorlang.ir.affine import Affine, Atom, Product
from tensorlang.ir.affine.form import from_sums

Moving = tuple[Atom, ...]
"""The factors of a term that are no sizes, in order."""


def group_terms(index: Affine, is_fixed: Callable[[Atom], bool]) -> list[tuple[Moving, Affine]]:
    """Return the sum of terms as products of what moves and a weight that ``is_fixed`` throughout.

    The constant of ``index`` is left out.
    """
    sums: dict[Moving, dict[Atom, int]] = {}
    constants: dict[Moving, int] = {}
    for atom, coefficient in index.terms:
        factors = atom.factors if isinstance(atom, Product) else (atom,)
        moving = tuple([factor for factor in factors if not is_fixed(factor)])
        fixed = tuple([factor for factor in factors if factor not in moving])
        if fixed:
            weight = fixed[0] if len(fixed) == 1 else Product(fixed)
            of_moving = sums.setdefault(moving, {})
            of_moving[weight] = of_moving.get(weight, 0) + coefficient
        else:
            sums.setdefault(moving, {})
            constants[moving] = coefficient
    return [(moving, from_sums(constants.get(moving, 0), s)) for moving, s in sums.items()]
