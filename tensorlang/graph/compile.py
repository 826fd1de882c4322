"""From a graph to a callable: passes, then each node's definition with the default schedule.

Input:  a ``GraphProgram``, ``CompileOptions``      Output: a ``CompiledGraph``
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.driver.options import CompileOptions
from tensorlang.driver.pipeline import compile_default
from tensorlang.graph.executor import CompiledGraph
from tensorlang.graph.passes import optimize
from tensorlang.graph.program import GraphProgram, Node
from tensorlang.lang.mistakes import definition_error
from tensorlang.runtime.alignment import aligned
from tensorlang.runtime.callable import CompiledFunction
from tensorlang.schedule.schedule import Schedule


def compile_graph(program: GraphProgram, options: CompileOptions) -> CompiledGraph:
    """Return the callable of a graph; the passes that run depend on ``options.opt_level``.

    Raises DefinitionError for a graph without outputs.
    """
    if not program.outputs:
        raise definition_error(f"the graph {program.name} has no output; call g.output(y) first")
    wanted = replace(program, target=options.target, rtol=options.rtol)
    optimized = _aligned(optimize(wanted, options.opt_level))
    functions = [_compile(node, options) for node in optimized.nodes]
    return CompiledGraph(optimized, functions, recipe=(compile_graph, (program, options)))


def _aligned(program: GraphProgram) -> GraphProgram:
    """Return the graph with its constants at the beginning of cache lines.

    A vector that lies across two lines takes two reads.
    """
    moved = [replace(known, array=aligned(known.array)) for known in program.constants]
    return replace(program, constants=tuple(moved))


def _compile(node: Node, options: CompileOptions) -> CompiledFunction:
    function = compile_default(Schedule(node.definition), options)
    function.prepare()
    return function
