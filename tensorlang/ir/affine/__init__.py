"""Index expressions: atoms, canonical forms over them, and walks over the forms."""

from tensorlang.ir.affine.atoms import (
    Atom,
    FloorDiv,
    Key,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
)
from tensorlang.ir.affine.form import (
    ONE,
    ZERO,
    Affine,
    AffineLike,
    affine,
    from_terms,
    maximum,
    minimum,
    multiply_atoms,
)
from tensorlang.ir.affine.walks import (
    atom_variables,
    depends_on,
    evaluate,
    linear_coefficient,
    map_atoms,
    substitute,
    variables_of,
)

__all__ = [
    "ONE",
    "ZERO",
    "Affine",
    "AffineLike",
    "Atom",
    "FloorDiv",
    "Key",
    "Min",
    "Product",
    "SymbolicDiv",
    "ValueAtom",
    "Var",
    "affine",
    "atom_variables",
    "depends_on",
    "evaluate",
    "from_terms",
    "linear_coefficient",
    "map_atoms",
    "maximum",
    "minimum",
    "multiply_atoms",
    "substitute",
    "variables_of",
]
