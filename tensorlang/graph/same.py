"""Whether two nodes compute the same: compared stage by stage, never by a hash.

Input:  ``relu`` and ``relu_1``, both applied to x      Output: True

Definitions are the same when some renaming of stage tensors and axes makes one the other; inputs
must be the very same tensors, in the same places.
"""

from __future__ import annotations

from tensorlang.ir.affine import AffineLike, Var
from tensorlang.ir.definition import Combiner, Definition, Stage, Tensor
from tensorlang.ir.expr import Expr, Placeholder, structural_key
from tensorlang.ir.specialize import Replacement, replace_in_expr, replace_in_index
from tensorlang.ir.walk import rewrite_expr


def is_same_definition(left: Definition, right: Definition) -> bool:
    """Tell whether two definitions over the same inputs give their outputs the same values."""
    shallow = (
        left.inputs == right.inputs
        and len(left.stages) == len(right.stages)
        and len(left.outputs) == len(right.outputs)
    )
    if not shallow:
        return False
    tensors: dict[Tensor, Tensor] = {}
    for one, other in zip(left.stages, right.stages, strict=True):
        if not _is_same_stage(one, other, tensors):
            return False
    return left.outputs == tuple([tensors.get(output, output) for output in right.outputs])


def _is_same_stage(left: Stage, right: Stage, tensors: dict[Tensor, Tensor]) -> bool:
    """Compare stages, after renaming the right one's axes and what ``tensors`` renames."""
    counts = (
        len(left.tensors) == len(right.tensors)
        and len(left.values) == len(right.values)
        and left.routine == right.routine
        and len(left.axes) == len(right.axes)
        and len(left.reduction_axes) == len(right.reduction_axes)
        and len(left.predicate) == len(right.predicate)
    )
    if not counts or left.copies is not None or right.copies is not None:
        return False
    tensors.update(zip(right.tensors, left.tensors, strict=True))
    axes: dict[Var, AffineLike] = dict(zip(right.variables, left.variables, strict=True))
    new = Replacement(axes, tensors)
    extents = zip(left.all_axes, right.all_axes, strict=True)
    forms = zip(left.predicate, right.predicate, strict=True)
    return (
        all(a.dtype is b.dtype for a, b in zip(left.tensors, right.tensors, strict=True))
        and all(a.extent == replace_in_index(b.extent, new) for a, b in extents)
        and all(a == replace_in_index(b, new) for a, b in forms)
        and all(
            _is_same_expr(a, replace_in_expr(b, new))
            for a, b in zip(left.values, right.values, strict=True)
        )
        and _is_same_combiner(left.combiner, right.combiner, new)
    )


def _is_same_combiner(left: Combiner | None, right: Combiner | None, new: Replacement) -> bool:
    if left is None or right is None:
        return left is right
    if left.name != right.name or left.ordered != right.ordered:
        return False
    if len(left.left) != len(right.left):
        return False
    states = dict(zip(right.left + right.right, left.left + left.right, strict=True))

    def renamed(expr: Expr) -> Expr:
        return rewrite_expr(
            replace_in_expr(expr, new),
            lambda node: states.get(node, node) if isinstance(node, Placeholder) else node,
        )

    pairs = zip(left.result + left.identity, right.result + right.identity, strict=True)
    return all(_is_same_expr(a, renamed(b)) for a, b in pairs)


def _is_same_expr(left: Expr, right: Expr) -> bool:
    return structural_key(left) == structural_key(right)
