"""An operator with options: compiled once per ranks, dtypes and attributes that calls bring.

Input:  ``relu(x)`` with ``x`` a matrix of f32, then one of f64
Output: two compiled functions, each kept for the calls to come

Every operator that is called with arrays goes through here, with the default options.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, cast

import numpy as np

from tensorlang.config import settings
from tensorlang.driver.once import OncePerKey
from tensorlang.driver.options import CompileOptions
from tensorlang.driver.pipeline import compile_default
from tensorlang.ir.definition import Definition
from tensorlang.lang.compute import BoundCall, Operator, set_call_hook
from tensorlang.runtime.callable import CompiledFunction
from tensorlang.runtime.dispatcher import FastCalls
from tensorlang.runtime.timing import Timing
from tensorlang.schedule.schedule import Schedule
from tensorlang.vectorcall import callable_type

_Kinds = tuple[Any, ...]


class SpecializingFunction:
    """Calls the version of ``operator`` that fits the arguments, compiling it if need be.

    ``fixed`` are attributes that every call gets; ``face`` is the class whose instance is called,
    where that is not this object itself. Safe to call from several threads.
    """

    def __new__(cls, *_: Any, **__: Any) -> SpecializingFunction:
        """Return an instance with room for a C function, which repeated calls run."""
        return object.__new__(callable_type(cls))

    def __init__(
        self,
        operator: Operator,
        options: CompileOptions,
        fixed: Mapping[str, Any] | None = None,
        *,
        face: type[Operator] | None = None,
    ) -> None:
        self.operator = operator
        self.options = options
        self.__name__ = operator.name
        self.__doc__ = operator.__doc__
        self._fixed = dict(fixed or {})
        self._functions: OncePerKey[Definition, CompiledFunction] = OncePerKey()
        self._by_kinds: dict[_Kinds, CompiledFunction] = {}
        self._fast = FastCalls((face or SpecializingFunction).__call__)
        self._takes_out = all(p.name != "out" for p in operator.parameters)
        known = [p.name for p in operator.parameters if p.kind in ("attribute", "dim")]
        for name in self._fixed:
            if name not in known:
                raise TypeError(
                    f"{operator.name} has no attribute {name!r} that can be fixed before ranks"
                    f" and dtypes are known; it has {', '.join(known) or 'none'}"
                )

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run on arrays: the arguments of the operator, and ``out=``."""
        return self.call_for(self, args, keywords)

    def call_for(self, owner: object, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        """Run on arrays; when such calls come again, let those of ``owner`` take the fast way."""
        function, call = self._resolve(args, keywords)
        returned, arguments, results = function.run_bound(
            call.tensors, call.scalars, call.dims, call.out
        )
        if self._takes_out:
            self._fast.offer(
                owner, args, keywords, lambda: function.plan(args, keywords, arguments, results)
            )
        return returned

    def _resolve(
        self, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[CompiledFunction, BoundCall]:
        plain = not keywords or (self._takes_out and set(keywords) == {"out"})
        kinds = _kinds(args) if plain else None
        if kinds is not None:
            function = self._by_kinds.get(kinds)
            if function is not None:
                call = BoundCall(function.definition, args, (), {}, keywords.get("out"))
                return function, call
        call = self.operator.bind_arguments(args, {**self._fixed, **keywords})
        function = self._function(call.definition)
        if kinds is not None and not call.dims and _same(call.tensors, args):
            self._by_kinds[kinds] = function
        return function, call

    def function_for(self, *args: Any, **keywords: Any) -> CompiledFunction:
        """Return the compiled function that a call with these arguments would run."""
        call = self.operator.bind_arguments(args, {**self._fixed, **keywords})
        return self._function(call.definition)

    def time(self, *args: Any, seconds: float = 0.2, **keywords: Any) -> Timing:
        """Measure calls with these arguments for about ``seconds``."""
        return self.function_for(*args, **keywords).time(*args, seconds=seconds, **keywords)

    def _function(self, definition: Definition) -> CompiledFunction:
        return self._functions.get(
            definition,
            lambda: compile_default(Schedule(definition, None, self.operator), self.options),
        )

    def __reduce__(self) -> tuple[type[SpecializingFunction], tuple[Any, ...]]:
        """Pickle what versions are made of; each is compiled anew where it is needed."""
        return SpecializingFunction, (self.operator, self.options, self._fixed)

    def __repr__(self) -> str:
        return f"<{self.operator!r} for {self.options.target}, compiled per rank and dtype>"


def _kinds(args: tuple[Any, ...]) -> _Kinds | None:
    """Return what a specialization depends on, if all arguments are NumPy arrays."""
    kinds: list[Any] = []
    for value in args:
        if type(value) is not np.ndarray:
            return None
        kinds.append((value.dtype, value.ndim))
    return tuple(kinds)


def _same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def call_operator(operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run ``operator(*args, **keywords)`` for the target of the settings."""
    known: SpecializingFunction | None = operator.__dict__.get("_compiled")
    if known is None:
        made = SpecializingFunction(
            operator, CompileOptions(target=settings().target), face=type(operator)
        )
        # of two threads that get here at the same time, both must use the same one
        known = cast("SpecializingFunction", operator.__dict__.setdefault("_compiled", made))
    return known.call_for(operator, args, keywords)


set_call_hook(call_operator)
