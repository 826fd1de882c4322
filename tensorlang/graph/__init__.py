"""Graphs of operators: building, rewriting, and running them."""

from tensorlang.graph.builder import Graph
from tensorlang.graph.executor import CompiledGraph
from tensorlang.graph.function import GraphFunction, graph
from tensorlang.graph.tensor import GraphTensor

__all__ = ["CompiledGraph", "Graph", "GraphFunction", "GraphTensor", "graph"]
