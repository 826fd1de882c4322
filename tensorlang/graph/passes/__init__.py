"""Passes over graphs: each a function from a ``GraphProgram`` to one that computes the same.

Importing a module registers its pass; this list is the order in which they run.
"""

# ruff: noqa: I001 - the order is the order of running
from tensorlang.graph.passes.fold_constants import fold_constants
from tensorlang.graph.passes.eliminate_common import eliminate_common
from tensorlang.graph.passes.eliminate_dead import eliminate_dead
from tensorlang.graph.passes.use_winograd import use_winograd
from tensorlang.graph.passes.fuse_elementwise import fuse_elementwise
from tensorlang.graph.passes.pack_filters import pack_filters
from tensorlang.graph.passes.pack_matrices import pack_matrices
from tensorlang.graph.passes.registry import PASSES, GraphPass, PassContext, graph_pass, optimize

__all__ = [
    "PASSES",
    "GraphPass",
    "PassContext",
    "eliminate_common",
    "eliminate_dead",
    "fold_constants",
    "fuse_elementwise",
    "graph_pass",
    "optimize",
    "pack_filters",
    "pack_matrices",
    "use_winograd",
]
