"""Operators called from inside numba's ``@njit`` functions.

Input:  ``@numba.njit`` code with the line ``C = matmul(A, B)``, or ``matmul(A, B, C)`` to fill C
Output: numba knows the result's type from the operator's definition; the call runs the operator

numba finds ``register`` by the entry point group ``numba_extensions`` when it compiles for the
first time; nothing here is imported before. A call goes through Python for a moment: it takes
the lock, makes array objects of numba's arrays, and then is an ordinary call, with the same checks
and the same messages. So it costs microseconds, and errors come out of ``@njit`` code unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from tensorlang.dtypes import TensorAnnotation, from_numpy
from tensorlang.graph.executor import CompiledGraph
from tensorlang.ir.definition import Tensor
from tensorlang.lang.compute import Operator
from tensorlang.lang.dims import Dim
from tensorlang.runtime.callable import CompiledFunction
from tensorlang.vectorcall import callable_type

_NUMBA_NAMES = {
    "bool": "boolean", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip

_STUB = """
def tensorlang_stub({signature}):
    raise RuntimeError("for numba's eyes only")

def tensorlang_implement({signature}):
    return tensorlang_choose(({names},), out)

def tensorlang_wrapper({signature}):
    return tensorlang_stub({names}, out)
"""

_FRESH = """
def tensorlang_call({signature}):
    with tensorlang_objmode({types}):
        {results} = tensorlang_function({names})
    return {results}
"""

_FILL = """
def tensorlang_call({signature}):
    with tensorlang_objmode():
        tensorlang_function({names}, out=out)
    return out
"""

_wrappers: dict[int, tuple[Any, Any]] = {}
"""By the identity of an operator: the operator, kept alive for it, and its numba function."""


def register() -> None:
    """Teach numba the types of operators, compiled functions and compiled graphs.

    numba calls this itself where tensorlang is installed.
    """
    from numba.extending import typeof_impl

    typeof: Any = typeof_impl
    for kind in (Operator, CompiledFunction, CompiledGraph):
        for registered in {kind, callable_type(kind)}:
            typeof.register(registered)(_typeof)


def _typeof(value: Any, context: Any) -> Any:
    from numba.extending import typeof_impl

    if id(value) not in _wrappers:
        _wrappers[id(value)] = value, _wrapper(value)
    return cast("Any", typeof_impl)(_wrappers[id(value)][1], context)


def _wrapper(function: Any) -> Any:
    """Return a numba function that calls ``function`` with the arguments that it is given."""
    import numba
    from numba.extending import overload

    names = _names(function)

    def choose(types: Sequence[Any], out: Any) -> Callable[..., Any]:
        return _implementation(function, names, types, out)

    made = _execute(_STUB, {"tensorlang_choose": choose}, names)
    cast("Any", overload)(made["tensorlang_stub"])(made["tensorlang_implement"])
    return cast("Any", numba).njit(made["tensorlang_wrapper"])


def _execute(
    source: str, namespace: dict[str, Any], names: Sequence[str], **texts: str
) -> dict[str, Any]:
    listed = ", ".join(names)
    code = source.format(signature=f"{listed}, out=None", names=listed, **texts)
    exec(compile(code, "<tensorlang for numba>", "exec"), namespace)
    return namespace


def _implementation(
    function: Any, names: Sequence[str], types: Sequence[Any], out: Any
) -> Callable[..., Any]:
    from numba import objmode
    from numba.core import types as numba_types

    namespace: dict[str, Any] = {"tensorlang_function": function, "tensorlang_objmode": objmode}
    if out is not None and not isinstance(out, numba_types.NoneType | numba_types.Omitted):
        return _execute(_FILL, namespace, names)["tensorlang_call"]
    results = _result_types(function, types)
    places = [f"result{number}" for number in range(len(results))]
    for place, result in zip(places, results, strict=True):
        namespace[f"tensorlang_{place}"] = result
    listed = ", ".join([f"{place}=tensorlang_{place}" for place in places])
    made = _execute(_FRESH, namespace, names, types=listed, results=", ".join(places))
    return made["tensorlang_call"]


def _names(function: Any) -> list[str]:
    """Return the names of the parameters that are given by position."""
    if isinstance(function, Operator):
        return [p.name for p in function.parameters if not p.keyword_only]
    if isinstance(function, CompiledGraph):
        return [tensor.name for tensor in function.program.inputs]
    definition = cast("CompiledFunction", function).definition
    return [value.name for value in (*definition.inputs, *definition.scalars)]


def _result_types(function: Any, types: Sequence[Any]) -> list[Any]:
    """Return numba's types of the results; raises TypingError for what numba has no type for."""
    return [_array_type(tensor) for tensor in _outputs(function, types)]


def _outputs(function: Any, types: Sequence[Any]) -> tuple[Tensor, ...]:
    if isinstance(function, CompiledGraph):
        return function.program.outputs
    if isinstance(function, CompiledFunction):
        return function.definition.outputs
    operator = cast("Operator", function)
    if not operator.is_generic:
        return operator.definition().outputs
    return operator.definition(*[_annotation(type) for type in types]).outputs


def _annotation(type: Any) -> TensorAnnotation:
    from numba.core.errors import TypingError
    from numba.np.numpy_support import as_dtype

    dtype = from_numpy(as_dtype(type.dtype)) if hasattr(type, "ndim") else None
    if dtype is None:
        raise TypingError(f"tensorlang has no type for numba's {type}")
    return TensorAnnotation(dtype, tuple([Dim(f"n{axis}") for axis in range(type.ndim)]))


def _array_type(tensor: Tensor) -> Any:
    from numba.core import types as numba_types
    from numba.core.errors import TypingError

    name = _NUMBA_NAMES.get(tensor.dtype.name)
    if name is None:
        raise TypingError(f"numba has no type for {tensor.name}, which holds {tensor.dtype.name}")
    return numba_types.Array(getattr(numba_types, name), len(tensor.shape), "C")
