"""tensorlang: a tensor language in which no schedule can produce a wrong result.

``import tensorlang as tl`` gives the language at once; scheduling, compiling, graphs and the
rest are loaded when they are first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tensorlang.config import check_python
from tensorlang.dtypes import (
    BY_NUMPY_NAME,
    bf16,
    bool_,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from tensorlang.errors import CompileError, DefinitionError, ScheduleError, TensorlangError
from tensorlang.lang.axes import grid, range
from tensorlang.lang.comprehension import tensor
from tensorlang.lang.compute import Operator, compute
from tensorlang.lang.dims import Dim, dim, dims
from tensorlang.lang.functions import (
    abs,
    acos,
    asin,
    atan,
    atan2,
    bitcast,
    cast,
    ceil,
    clip,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    fma,
    inf,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    maximum,
    minimum,
    nan,
    pad,
    popcount,
    pow,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    where,
)
from tensorlang.lang.order import argsort, sort, topk
from tensorlang.lang.reductions import all, any, argmax, argmin, max, min, prod, reduce, sum
from tensorlang.lang.scan import scan
from tensorlang.lang.scatter import scatter

check_python()

if TYPE_CHECKING:  # loaded when first used, see _LAZY
    from tensorlang.driver import compile
    from tensorlang.graph import Graph, graph
    from tensorlang.graph.passes import PassContext
    from tensorlang.runtime.threads import num_threads as get_num_threads
    from tensorlang.runtime.threads import set_num_threads
    from tensorlang.schedule.entry import schedule
    from tensorlang.schedule.schedule import Schedule

bool = bool_

__version__ = "0.1.0"

_LAZY = {
    "Schedule": ("tensorlang.schedule.schedule", "Schedule"),
    "schedule": ("tensorlang.schedule.entry", "schedule"),
    "compile": ("tensorlang.driver", "compile"),
    "Graph": ("tensorlang.graph", "Graph"),
    "graph": ("tensorlang.graph", "graph"),
    "PassContext": ("tensorlang.graph.passes", "PassContext"),
    "nn": ("tensorlang.nn", ""),
    "testing": ("tensorlang.testing", ""),
    "set_num_threads": ("tensorlang.runtime.threads", "set_num_threads"),
    "get_num_threads": ("tensorlang.runtime.threads", "num_threads"),
}
"""Names that are loaded when they are first used: module, and the name in it (or the module)."""

_SHADOWED = ("graph", "schedule")
"""Names of which a subpackage exists too; the import system must not put it in their place."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        ours = BY_NUMPY_NAME.get(name)
        cure = f"; write tl.{ours.name}" if ours is not None else ""
        raise AttributeError(
            f"module 'tensorlang' has no attribute {name!r}{cure}",
            name=name,
            obj=sys.modules[__name__],
        )
    module, attribute = _LAZY[name]
    value = getattr(import_module(module), attribute) if attribute else import_module(module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_LAZY.keys() - set(__all__), "__version__"]


class _Package(ModuleType):
    """The package, in which ``tl.schedule`` stays the function when its subpackage is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _SHADOWED or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

__all__ = [
    "CompileError",
    "DefinitionError",
    "Dim",
    "Graph",
    "Operator",
    "PassContext",
    "Schedule",
    "ScheduleError",
    "TensorlangError",
    "abs",
    "acos",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "atan",
    "atan2",
    "bf16",
    "bitcast",
    "bool",
    "bool_",
    "cast",
    "ceil",
    "clip",
    "compile",
    "compute",
    "cos",
    "cosh",
    "dim",
    "dims",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "f16",
    "f32",
    "f64",
    "floor",
    "fma",
    "get_num_threads",
    "graph",
    "grid",
    "i8",
    "i16",
    "i32",
    "i64",
    "inf",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "max",
    "maximum",
    "min",
    "minimum",
    "nan",
    "pad",
    "popcount",
    "pow",
    "prod",
    "range",
    "reduce",
    "round",
    "rsqrt",
    "scan",
    "scatter",
    "schedule",
    "set_num_threads",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "tensor",
    "topk",
    "trunc",
    "u8",
    "u16",
    "u32",
    "u64",
    "where",
]  # fmt: skip
