"""A compiled operator as a Python function over NumPy arrays.

Input:  ``f(A, B)`` with arrays of any strides
Output: a new array, or the ``out`` that was given, filled by machine code

The machine code exists in versions, by how each array lies in memory: in C order ("contiguous"),
with a unit stride along the last axis ("inner"), with any strides ("any"); and by what is chosen
for the sizes of a call. A version is compiled when a call first needs it; strides that it does not
know are passed like sizes.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import mod
from time import perf_counter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from tensorlang.ir.definition import Condition, Definition
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.ir.printer import format_lowered, format_signature
from tensorlang.runtime.arrays import (
    Array,
    ArrayLayout,
    TensorParameter,
    address_of,
    is_addressable,
    layout_of,
)
from tensorlang.runtime.dispatcher import FastCalls
from tensorlang.runtime.failures import failure
from tensorlang.runtime.kernel import OK, CtypesCaller, Kernel, KernelFace, is_parallel
from tensorlang.runtime.limits import limits_of
from tensorlang.runtime.plans import Plan, Step, places_of
from tensorlang.runtime.recycling import allocate
from tensorlang.runtime.report import Report, VersionReport
from tensorlang.runtime.results import (
    allocate_results,
    check_outputs,
    returned_value,
    to_allocate,
)
from tensorlang.runtime.signature import Arguments, Signature
from tensorlang.runtime.sizes import Binding, BindSizes, SizeBinder
from tensorlang.runtime.threads import (
    num_threads,
    openmp,
    threads_for,
    threads_start_anywhere,
)
from tensorlang.runtime.timing import Timing, measure
from tensorlang.vectorcall import callable_type

Layouts: TypeAlias = tuple[ArrayLayout, ...]
Build: TypeAlias = Callable[[Layouts, Any], Kernel]
"""Compiles a version: for certain layouts, and a choice that ``Choose`` made (None: any sizes)."""
Choose: TypeAlias = Callable[[Binding], Any]
"""Returns which version a call wants, a hashable value; None: the one for all sizes."""
Recipe: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""What makes the function again where it is unpickled: a function and its arguments."""
SourceKind: TypeAlias = Literal["schedule", "loops", "llvm", "asm", "ptx"]

_REMEMBERED = 512  # plans, by shapes and strides

_WORTH_RELEASING = 5e-6
"""Seconds of estimated work from which other Python threads may run meanwhile."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a compiled function comes from, as far as it tells people about it."""

    target: str = "cpu"
    schedule: Callable[[], str] = str
    proof: str = ""


@dataclass(frozen=True, slots=True)
class _Version:
    """A kernel, and what it is passed.

    ``sizes`` are places among those of the definition, ``strides`` the (array, axis) that follow.
    """

    kernel: Kernel
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, int], ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a call with certain shapes and strides does; remembered for the next such call."""

    version: _Version
    binding: Binding
    sizes: tuple[int, ...]  # those of the kernel, then the strides
    alignments: tuple[int, ...]  # of each array's address


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A kernel ready to run again on arrays that lie like those of an earlier call."""

    step: Step
    seconds: float
    keep_alive: object


def is_worth_releasing(seconds: float) -> bool:
    """Tell whether other Python threads should run during work of ``seconds``."""
    return seconds >= _WORTH_RELEASING


class CompiledFunction:
    """Calls the machine code of one definition; safe to call from several threads.

    ``f(A, B)`` returns new arrays (a tuple if the operator has several outputs); ``f(A, B, out=C)``
    writes into C. Inputs may be strided, read-only, and share memory; ``out`` may be strided.

    Raises
    ------
    TypeError
        for the wrong number of arguments, for what is not an array, for another dtype
    ValueError
        for shapes that contradict each other or break a condition, for an unfit ``out``
    IndexError
        for an index taken from data that leaves its tensor
    MemoryError
        if no memory is left for results or temporaries

    """

    def __new__(cls, *_: Any, **__: Any) -> CompiledFunction:
        """Return an instance with room for a C function, which repeated calls run."""
        return object.__new__(callable_type(cls))

    def __init__(
        self,
        definition: Definition,
        build: Build,
        bind_sizes: BindSizes,
        *,
        choose: Choose | None = None,
        conditions: Sequence[Condition] = (),
        origin: Origin | None = None,
        defaults: Mapping[str, Any] | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        self.definition = definition
        self.__name__ = definition.name
        self.__doc__ = definition.documentation or CompiledFunction.__doc__
        self._origin = origin or Origin()
        self._build = build
        self._choose = choose or _any_sizes
        self._recipe = recipe
        self._signature = Signature(definition, defaults)
        self._outputs = tuple(
            TensorParameter(definition.name, tensor) for tensor in definition.outputs
        )
        self._binder = SizeBinder(definition, conditions, bind_sizes)
        self._versions: dict[tuple[Layouts, Any], _Version] = {}
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._lock = threading.Lock()
        self._fast = FastCalls(CompiledFunction.__call__)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run on arrays; see the class."""
        named = dict(keywords)
        out = named.pop("out", None)
        arguments = self._signature.bind(args, named)
        results = self._results(arguments, out)
        self._run(arguments, results)
        self._fast.offer(
            self, args, keywords, lambda: self.plan(args, keywords, arguments, results)
        )
        return returned_value(results, out, (*args, *named.values()))

    def call_bound(
        self, tensors: Sequence[Any], scalars: Sequence[Any], dims: Mapping[str, int], out: Any
    ) -> Any:
        """Run on arguments in the order of the definition: inputs, scalars, sizes by name."""
        return self.run_bound(tensors, scalars, dims, out)[0]

    def run_bound(
        self, tensors: Sequence[Any], scalars: Sequence[Any], dims: Mapping[str, int], out: Any
    ) -> tuple[Any, Arguments, tuple[Array, ...]]:
        """Run as ``call_bound`` does; return also what the arguments and results are as arrays."""
        arguments = self._signature.convert(tensors, scalars, dims)
        results = self._results(arguments, out)
        self._run(arguments, results)
        return returned_value(results, out, tensors), arguments, results

    def run_into(
        self, arrays: Sequence[Array], dims: Mapping[str, int], results: Sequence[Array]
    ) -> None:
        """Run on arrays that are known to fit, and to share no memory with ``results``.

        For a caller that has checked all that: a graph, which does so once for all its nodes.
        """
        self._run(Arguments(tuple(arrays), (), dims), tuple(results))

    def prepare(self) -> None:
        """Compile the version for arrays in C order, so that the first call does not wait."""
        self._version(self._contiguous())

    def __reduce__(self) -> Recipe:
        """Pickle how the function was made; it is proved and compiled anew where it is loaded."""
        if self._recipe is None:
            raise TypeError(f"{self!r} cannot be pickled")
        return self._recipe

    def source(self, kind: SourceKind = "loops") -> str:
        """Return the program as text: "schedule", "loops" (lowered), "llvm", "asm" or "ptx".

        The last one is for GPUs. All but the first show the version for arrays in C order.
        """
        if kind not in get_args(SourceKind):
            known = ", ".join(map(repr, get_args(SourceKind)))
            raise ValueError(f"{self.__name__}.source: {kind!r} is not one of {known}")
        if kind == "schedule":
            return self._origin.schedule()
        kernel = self._version(self._contiguous()).kernel
        if kind == "loops" and isinstance(kernel.program, LoweredProgram):
            return format_lowered(kernel.program)
        if kind not in kernel.texts:
            raise ValueError(
                f"{self.__name__}.source: {kind!r} is not made for {self._origin.target}"
            )
        return kernel.texts[kind]()

    def time(self, *args: Any, out: Any = None, seconds: float = 0.2, **keywords: Any) -> Timing:
        """Measure calls with these arguments for about ``seconds``; results reuse their memory.

        The first timing on a machine measures the ceilings, too, to tell the shares of them.
        """
        arguments = self._signature.bind(args, keywords)
        results = self._results(arguments, out)
        given = results[0] if len(results) == 1 else results
        work = self._bind(arguments).work
        plan = self._plan(arguments, (*arguments.arrays, *results))
        is_split = plan is not None and is_parallel(plan.version.kernel.program)
        threads = threads_for(work.serial_seconds) if is_split else 1
        tensors = (*self.definition.inputs, *self.definition.outputs)
        dtypes = [tensor.dtype for tensor in tensors]
        return measure(
            lambda: self(*args, out=given, **keywords),
            seconds=seconds,
            name=self.__name__,
            operations=work.operations,
            bytes=work.bytes,
            limits=limits_of(self._origin.target, dtypes, work.bytes, threads),
        )

    @property
    def target(self) -> str:
        """What the code is for, as it was given to ``tl.compile``."""
        return self._origin.target

    @property
    def report(self) -> Report:
        """What was compiled so far, how long it took, and what is known of its correctness."""
        return Report(
            name=self.__name__,
            target=self._origin.target,
            proof=self._origin.proof,
            threads=f"{num_threads()} of {openmp().name}" if openmp().is_parallel else "1",
            versions=tuple(
                VersionReport(
                    layouts,
                    version.seconds,
                    dict(version.kernel.seconds),
                    version.kernel.notes(),
                    "" if choice is None else str(choice),
                )
                for (layouts, choice), version in self._versions.items()
            ),
        )

    def _repr_html_(self) -> str:
        from tensorlang.ir.html import program_html

        return program_html(f"{self!r}\n{self.source('loops')}")

    def __repr__(self) -> str:
        signature = format_signature(self.definition).removeprefix("def ")
        return f"<compiled {signature} for {self._origin.target}>"

    # --- one call ----------------------------------------------------------------------------

    def _bind(self, arguments: Arguments) -> Binding:
        shapes = tuple([array.shape for array in arguments.arrays])
        return self._binder.bind(shapes, arguments.dims)

    def _results(self, arguments: Arguments, out: Any) -> tuple[Array, ...]:
        shapes = self._bind(arguments).output_shapes
        if out is None:
            return allocate_results(self._outputs, shapes)
        names = [parameter.name for parameter in self._signature.tensors]
        inputs = list(zip(names, arguments.arrays, strict=True))
        return check_outputs(self._outputs, out, shapes, inputs)

    def _run(self, arguments: Arguments, results: tuple[Array, ...]) -> None:
        arrays = (*arguments.arrays, *results)
        plan = self._plan(arguments, arrays)
        addresses = [address_of(array) for array in arrays]
        if plan is None or any(map(mod, addresses, plan.alignments)):
            self._run_on_copies(arguments, results)
            return
        code, status = plan.version.kernel.caller(
            addresses,
            arguments.scalars,
            plan.sizes,
            threads_for(plan.binding.work.serial_seconds),
        )
        if code != OK:
            sizes = dict(zip(self.definition.sizes, plan.binding.sizes, strict=True))
            raise failure(plan.version.kernel.program, code, status, sizes)

    def _run_on_copies(self, arguments: Arguments, results: tuple[Array, ...]) -> None:
        """Run on copies of what the machine cannot address as it lies."""
        inputs = tuple([a if is_addressable(a) else a.copy("C") for a in arguments.arrays])
        targets = tuple([r if is_addressable(r) else allocate(r.shape, r.dtype) for r in results])
        self._run(arguments._replace(arrays=inputs), targets)
        for result, target in zip(results, targets, strict=True):
            if result is not target:
                np.copyto(result, target)

    def _plan(self, arguments: Arguments, arrays: tuple[Array, ...]) -> _Plan | None:
        """Return what to do with such arrays; None where the machine cannot address them."""
        key = (
            *[(array.shape, array.strides) for array in arrays],
            *[arguments.dims[dim] for dim in self._signature.dims],
        )
        plan = self._plans.get(key)
        if plan is None:
            if not all(map(is_addressable, arrays)):
                return None
            if len(self._plans) >= _REMEMBERED:
                self._plans.clear()
            plan = self._plans[key] = self._new_plan(arguments, arrays)
        return plan

    # --- the same call again, without Python -------------------------------------------------

    def plan(
        self,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        arguments: Arguments,
        results: tuple[Array, ...],
    ) -> Plan | None:
        """Return how calls like this one run without Python, or None if they cannot.

        ``args`` and ``keywords`` are those of the call, ``arguments`` what they mean.
        """
        places = places_of(arguments.arrays, args, keywords)
        if places is None:
            return None
        given = [*args, *keywords.values()]
        out = -1
        if keywords.get("out") is not None:
            out = len(args) + list(keywords).index("out")
        targets = [out] if out >= 0 else range(len(given), len(given) + len(results))
        prepared = self.prepare_step(arguments, results, (*places, *targets))
        if prepared is None:
            return None
        made = [] if out >= 0 else to_allocate(self._outputs, results)
        return Plan(
            given, keywords, out, made, [prepared.step],
            releases=is_worth_releasing(prepared.seconds), keep_alive=prepared.keep_alive,
        )  # fmt: skip

    def prepare_step(
        self, arguments: Arguments, results: tuple[Array, ...], places: Sequence[int]
    ) -> PreparedStep | None:
        """Return the kernel of such a call, to be run again, or None if that is not possible.

        ``places`` tells for each array at which place of a call it stands; at -1, it is this
        array in every call, and its owner keeps it alive.
        """
        arrays = (*arguments.arrays, *results)
        plan = self._plan(arguments, arrays)
        if plan is None:
            return None
        kernel, work = plan.version.kernel, plan.binding.work
        addresses = [address_of(array) for array in arrays]
        threads = threads_for(work.serial_seconds) if is_parallel(kernel.program) else 1
        if (
            not isinstance(kernel.caller, CtypesCaller)
            or any(map(mod, addresses, plan.alignments))
            or (threads > 1 and not threads_start_anywhere())
        ):
            return None
        status = (ctypes.c_int64 * 4)()
        slots = kernel.caller.slots(
            addresses, arguments.scalars, plan.sizes, threads, ctypes.addressof(status)
        )
        pointers = tuple([(slot, place) for slot, place in enumerate(places) if place >= 0])
        step = Step(kernel.caller.address, slots, pointers)
        return PreparedStep(step, work.serial_seconds, (status, plan))

    def _new_plan(self, arguments: Arguments, arrays: tuple[Array, ...]) -> _Plan:
        binding = self._bind(arguments)
        layouts: Layouts = tuple([layout_of(array) for array in arrays])
        version = self._version(layouts, self._choose(binding))
        sizes = [binding.sizes[place] for place in version.sizes]
        strides = [arrays[a].strides[axis] // arrays[a].itemsize for a, axis in version.strides]
        alignments = tuple([array.itemsize for array in arrays])
        return _Plan(version, binding, (*sizes, *strides), alignments)

    # --- versions ----------------------------------------------------------------------------

    def _contiguous(self) -> Layouts:
        return ("contiguous",) * (len(self._signature.tensors) + len(self._outputs))

    def _version(self, layouts: Layouts, choice: Any = None) -> _Version:
        key = layouts, choice
        version = self._versions.get(key)
        if version is not None:
            return version
        with self._lock:
            if key not in self._versions:
                start = perf_counter()
                kernel = self._build(layouts, choice)
                sizes, strides = self._passed(kernel.program)
                self._versions[key] = _Version(kernel, sizes, strides, perf_counter() - start)
            return self._versions[key]

    def _passed(
        self, program: LoweredProgram | KernelFace
    ) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Return which sizes and which strides a kernel is passed: ``A.stride0`` is (0, 0)."""
        places = {size.name: place for place, size in enumerate(self.definition.sizes)}
        names = [parameter.name for parameter in (*self._signature.tensors, *self._outputs)]
        sizes: list[int] = []
        strides: list[tuple[int, int]] = []
        for size in program.sizes:
            name, stride, axis = size.name.rpartition(".stride")
            if stride:
                strides.append((names.index(name), int(axis)))
            else:
                sizes.append(places[size.name])
        return tuple(sizes), tuple(strides)


def _any_sizes(_: Binding) -> None:
    """Choose the version for all sizes."""
