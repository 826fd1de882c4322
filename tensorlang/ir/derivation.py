"""How a stage that a primitive made follows from the definition's stages.

Input:  ``C[i] = sum(A[i, k] for k < K)`` and the step ``rfactor(k.i)`` after a split by 4
Output: ``Factored(original=C, partial=C.rf, final=C', reduction=(4 * q + r,))`` where
``C.rf[i, r] = sum(A[i, 4 * q + r] for q if 4 * q + r < K)``, ``C'[i] = sum(C.rf[i, r] for r < 4)``

A program whose ``stages`` lack one of the definition's stages carries such a record for it; the
proof checks each record on its own (``poly.derivation``), in order: the stages that a record
starts from are the definition's, or were made by an earlier record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tensorlang.ir.affine import Affine
from tensorlang.ir.definition import Stage


@dataclass(frozen=True, slots=True, eq=False)
class Inlined:
    """``replacement`` is ``original`` with the loads of ``inlined``'s tensors replaced.

    A load of an element becomes the value that ``inlined`` gives to it, wrapped in a ``Cast`` to
    the tensor's dtype when evaluation would not round to it by itself: when the value has another
    dtype, or when the dtype is f16 or bf16, which are evaluated in f32. Both stages write the same
    tensors; the axes of ``replacement`` may be new variables.
    """

    original: Stage
    replacement: Stage
    inlined: Stage


@dataclass(frozen=True, slots=True, eq=False)
class Factored:
    """``original``'s reduction is ``partial``'s, followed by ``final``'s over the factored axes.

    ``partial`` has the data axes of ``original``, then the factored axes; its reduction axes are
    what remains, its predicate ``original``'s and the tails. ``final`` has the data axes of
    ``original``, reduces over the factored axes alone, writes ``original``'s tensors, and its
    values are the loads ``partial[data axes, factored axes]``. ``reduction`` gives each reduction
    variable of ``original`` as a form over ``partial``'s variables.
    """

    original: Stage
    partial: Stage
    final: Stage
    reduction: tuple[Affine, ...]


Derivation: TypeAlias = Inlined | Factored
