"""A compiled graph: its functions run in order, in memory that is planned once per sizes.

Input:  ``m(x)``
Output: fresh arrays for the outputs (or ``out``); temporaries live in a block that the next call
        uses again, each where one that is no longer needed may have been

Sizes are bound once per combination of shapes. Calls from several threads each have a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tensorlang.dtypes import to_numpy
from tensorlang.graph.memory_plan import Lifetime, MemoryPlan, plan_memory
from tensorlang.graph.program import GraphProgram
from tensorlang.graph.text import operations_of
from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.definition import Tensor
from tensorlang.lang.binding import bind_sizes
from tensorlang.runtime.arrays import Array, TensorParameter
from tensorlang.runtime.callable import (
    CompiledFunction,
    PreparedStep,
    Recipe,
    is_worth_releasing,
)
from tensorlang.runtime.dispatcher import FastCalls
from tensorlang.runtime.limits import limits_of
from tensorlang.runtime.plans import Plan, places_of
from tensorlang.runtime.recycling import allocate
from tensorlang.runtime.results import (
    allocate_results,
    check_outputs,
    returned_value,
    to_allocate,
)
from tensorlang.runtime.signature import Arguments, Signature
from tensorlang.runtime.sizes import SizeBinder
from tensorlang.runtime.threads import num_threads
from tensorlang.runtime.timing import Timing, measure
from tensorlang.vectorcall import callable_type

_REMEMBERED = 16  # combinations of sizes whose memory is kept


@dataclass(frozen=True, slots=True)
class _Step:
    """One function, and which slots of the memory it reads and writes."""

    function: CompiledFunction
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The memory of a running call: an array per slot; those of arguments change per call."""

    slots: list[Any]
    dims: tuple[Mapping[str, int], ...]


class CompiledGraph:
    """Runs a graph on arrays; safe to call from several threads.

    ``m(x)`` returns a new array, a tuple for several outputs; ``m(x, out=y)`` writes into y.

    Raises
    ------
    TypeError
        for the wrong number of arguments, for what is not an array, for another dtype
    ValueError
        for shapes that contradict each other or a condition of an operator, for an unfit ``out``

    """

    def __new__(cls, *_: Any, **__: Any) -> CompiledGraph:
        """Return an instance with room for a C function, which repeated calls run."""
        return object.__new__(callable_type(cls))

    def __init__(
        self,
        program: GraphProgram,
        functions: Sequence[CompiledFunction],
        recipe: Recipe | None = None,
    ) -> None:
        self.program = program
        self._recipe = recipe
        self.functions = tuple(functions)
        self.__name__ = program.name
        self.__doc__ = program.documentation or CompiledGraph.__doc__
        signature = program.signature
        self._signature = Signature(signature)
        self._binder = SizeBinder(signature, (), bind_sizes)
        self._outputs = tuple(TensorParameter(program.name, t) for t in program.outputs)
        self._temporaries = _temporaries(program)
        slots = _slots(program, self._temporaries)
        self._steps = tuple(
            _Step(
                function,
                tuple(slots[t] for t in node.inputs),
                tuple(slots[t] for t in node.outputs),
                tuple(size.name for size in node.definition.dims),
            )
            for node, function in zip(program.nodes, functions, strict=True)
        )
        self._fast = FastCalls(CompiledGraph.__call__)
        self._idle: dict[tuple[int, ...], list[_Frame]] = {}

    def __reduce__(self) -> Recipe:
        """Pickle the graph as it was before the passes, and the options of its compilation."""
        if self._recipe is None:
            raise TypeError(f"the compiled graph {self.__name__} cannot be pickled")
        return self._recipe

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run on arrays; see the class."""
        return self.call_for(self, self._fast, args, keywords, args, keywords)

    def call_for(
        self,
        owner: object,
        fast: FastCalls,
        given: tuple[Any, ...],
        given_by_name: Mapping[str, Any],
        args: tuple[Any, ...],
        keywords: Mapping[str, Any],
    ) -> Any:
        """Run on ``args`` and ``keywords``, which mean what ``owner`` was given.

        When ``owner`` is given such arguments again, its calls take the fast way.
        """
        named = dict(keywords)
        out = named.pop("out", None)
        arguments = self._signature.bind(args, named)
        binding = self._binder.bind(tuple([array.shape for array in arguments.arrays]), {})
        results = self._results(arguments, binding.output_shapes, out)
        idle = self._idle.get(binding.sizes)
        if idle is None:
            if len(self._idle) >= _REMEMBERED:
                self._idle.clear()
            idle = self._idle.setdefault(binding.sizes, [])
        try:
            frame = idle.pop()
        except IndexError:
            frame = self._frame(dict(zip(self.program.sizes, binding.sizes, strict=True)))
        try:
            self._run(frame, arguments.arrays, results)
        finally:
            idle.append(frame)
        fast.offer(
            owner,
            given,
            given_by_name,
            lambda: self._fast_plan(given, given_by_name, arguments, results),
        )
        return returned_value(results, out, (*args, *named.values()))

    def _results(
        self, arguments: Arguments, shapes: tuple[tuple[int, ...], ...], out: Any
    ) -> tuple[Array, ...]:
        if out is None:
            return allocate_results(self._outputs, shapes)
        names = [parameter.name for parameter in self._signature.tensors]
        inputs = list(zip(names, arguments.arrays, strict=True))
        return check_outputs(self._outputs, out, shapes, inputs)

    def _run(self, frame: _Frame, inputs: Sequence[Array], results: Sequence[Array]) -> None:
        slots = frame.slots
        last = len(inputs) + len(results)
        slots[: len(inputs)] = inputs
        slots[len(inputs) : last] = results
        try:
            for step, dims in zip(self._steps, frame.dims, strict=True):
                step.function.run_into(
                    [slots[n] for n in step.inputs], dims, [slots[n] for n in step.outputs]
                )
        finally:
            slots[:last] = [None] * last  # keep nobody's arrays alive

    def _frame(self, sizes: Mapping[Var, int]) -> _Frame:
        """Return fresh memory for certain sizes."""
        plan = self._plan(sizes)
        block = allocate((plan.bytes,), np.dtype(np.uint8))
        slots: list[Any] = [None] * (len(self.program.inputs) + len(self._outputs))
        slots += [constant.array for constant in self.program.constants]
        for (tensor, _, _), offset in zip(self._temporaries, plan.offsets, strict=True):
            shape = tuple([evaluate(extent, sizes) for extent in tensor.shape])
            slots.append(np.ndarray(shape, to_numpy(tensor.dtype), block, offset))
        named = {size.name: value for size, value in sizes.items()}
        dims = tuple([{name: named[name] for name in step.dims} for step in self._steps])
        return _Frame(slots, dims)

    def _plan(self, sizes: Mapping[Var, int]) -> MemoryPlan:
        return plan_memory([
            Lifetime(_bytes(tensor, sizes), first, last)
            for tensor, first, last in self._temporaries
        ])  # fmt: skip

    def _fast_plan(
        self,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        arguments: Arguments,
        results: tuple[Array, ...],
    ) -> Plan | None:
        """Return how calls like this one run without Python; the plan has memory of its own."""
        places = places_of(arguments.arrays, args, keywords)
        if places is None:
            return None
        given = [*args, *keywords.values()]
        out = -1
        if keywords.get("out") is not None:
            out = len(args) + list(keywords).index("out")
        targets = [out] if out >= 0 else range(len(given), len(given) + len(results))
        binding = self._binder.bind(tuple([array.shape for array in arguments.arrays]), {})
        frame = self._frame(dict(zip(self.program.sizes, binding.sizes, strict=True)))
        slots = frame.slots
        outside = (*places, *targets)
        arrays = (*arguments.arrays, *results, *slots[len(outside) :])
        steps: list[PreparedStep] = []
        for step, dims in zip(self._steps, frame.dims, strict=True):
            prepared = step.function.prepare_step(
                Arguments(tuple([arrays[n] for n in step.inputs]), (), dims),
                tuple([arrays[n] for n in step.outputs]),
                [outside[n] if n < len(outside) else -1 for n in (*step.inputs, *step.outputs)],
            )
            if prepared is None:
                return None
            steps.append(prepared)
        made = [] if out >= 0 else to_allocate(self._outputs, results)
        return Plan(
            given, keywords, out, made, [step.step for step in steps],
            releases=is_worth_releasing(sum(step.seconds for step in steps)),
            keep_alive=(frame, steps),
        )  # fmt: skip

    # --- what is known of it -------------------------------------------------------------

    def memory(self, *args: Any, **keywords: Any) -> MemoryPlan:
        """Return where the temporaries of a call with these arguments lie."""
        return self._plan(self._sizes(args, keywords))

    def time(self, *args: Any, seconds: float = 0.2, **keywords: Any) -> Timing:
        """Measure calls with these arguments for about ``seconds``; results reuse their memory."""
        sizes = self._sizes(args, keywords)
        result = self(*args, **keywords)
        operations = sum(evaluate(operations_of(node), sizes) for node in self.program.nodes)
        tensors = (*self.program.inputs, *self.program.outputs)
        moved = sum(_bytes(tensor, sizes) for tensor in tensors)
        moved += sum(constant.array.nbytes for constant in self.program.constants)
        dtypes = [tensor.dtype for tensor in tensors]
        target = self.functions[0].target if self.functions else ""
        return measure(
            lambda: self(*args, out=result, **keywords),
            seconds=seconds, name=self.__name__, operations=operations, bytes=moved,
            limits=limits_of(target, dtypes, moved, num_threads()),
        )  # fmt: skip

    def source(self, kind: Any = "loops") -> str:
        """Return the program of every node as text; kinds as for a compiled operator."""
        return "\n\n".join(function.source(kind) for function in self.functions)

    def _sizes(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[Var, int]:
        arguments = self._signature.bind(args, keywords)
        binding = self._binder.bind(tuple([array.shape for array in arguments.arrays]), {})
        return dict(zip(self.program.sizes, binding.sizes, strict=True))

    def __str__(self) -> str:
        return str(self.program)

    def _repr_html_(self) -> str:
        from tensorlang.ir.html import program_html

        return program_html(str(self))

    def __repr__(self) -> str:
        return f"<compiled graph {self.__name__}: {len(self._steps)} functions>"


def _temporaries(program: GraphProgram) -> tuple[tuple[Tensor, int, int], ...]:
    """Return what nodes make for other nodes alone: tensor, step made, step read last."""
    result: list[tuple[Tensor, int, int]] = []
    for number, node in enumerate(program.nodes):
        for tensor in node.outputs:
            if tensor not in program.outputs:
                readers = [n for n, other in enumerate(program.nodes) if tensor in other.inputs]
                result.append((tensor, number, max(readers, default=number)))
    return tuple(result)


def _slots(
    program: GraphProgram, temporaries: Sequence[tuple[Tensor, int, int]]
) -> dict[Tensor, int]:
    constants = [constant.tensor for constant in program.constants]
    made = [tensor for tensor, _, _ in temporaries]
    order = [*program.inputs, *program.outputs, *constants, *made]
    return {tensor: number for number, tensor in enumerate(order)}


def _bytes(tensor: Tensor, sizes: Mapping[Var, int]) -> int:
    extents = [evaluate(extent, sizes) for extent in tensor.shape]
    return prod(extents) * to_numpy(tensor.dtype).itemsize
