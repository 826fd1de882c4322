"""Kernels written in Python behind the real calling convention, so that no compiler is needed.

Input:  a definition, and ``run(inputs, outputs, scalars, sizes)`` over NumPy views
Output: a ``Kernel`` whose entry reads the slots of the convention, as machine code would
"""

import ctypes
import struct
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tensorlang.dtypes import to_numpy
from tensorlang.ir.affine import Var, affine, evaluate
from tensorlang.ir.definition import Definition, Tensor
from tensorlang.ir.lowered import Buffer, CheckSite, LoweredProgram
from tensorlang.ir.program import EMPTY
from tensorlang.lang.binding import bind_sizes
from tensorlang.runtime.callable import CompiledFunction
from tensorlang.runtime.kernel import CtypesCaller, Kernel

FORMATS = {
    "bool": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I",
    "u64": "Q", "f16": "e", "bf16": "H", "f32": "f", "f64": "d",
}  # fmt: skip

Run = Callable[..., "tuple[int, tuple[int, int, int]] | None"]


def lowered(definition: Definition, layouts: Sequence[str], body=EMPTY) -> LoweredProgram:
    """Return a program with the buffers and the sizes that ``layouts`` ask for."""
    tensors = definition.inputs + definition.outputs
    strides: list[Var] = []
    for tensor, layout in zip(tensors, layouts, strict=True):
        axes = {"contiguous": 0, "inner": len(tensor.shape) - 1, "any": len(tensor.shape)}[layout]
        strides += [Var(f"{tensor.name}.stride{axis}") for axis in range(axes)]
    buffers = [Buffer(t.name, t.dtype, prod(t.shape, start=affine(1))) for t in tensors]
    count = len(definition.inputs)
    return LoweredProgram(
        definition.name,
        (*definition.sizes, *strides),
        definition.scalars,
        tuple(buffers[:count]),
        tuple(buffers[count:]),
        body,
        check_sites=(CheckSite("table", 0, f"{__file__}:1"),),
    )


def python_kernel(definition: Definition, layouts: Sequence[str], run: Run, body=EMPTY) -> Kernel:
    program = lowered(definition, layouts, body)
    tensors = definition.inputs + definition.outputs
    count = len(definition.inputs)

    def entry(arguments: int) -> int:
        slots = len(tensors) + len(program.scalars) + len(program.sizes) + 2
        raw = ctypes.string_at(arguments, 8 * slots)
        words = struct.unpack(f"={slots}q", raw)
        scalars = []
        for place, scalar in enumerate(program.scalars, start=len(tensors)):
            scalars.append(struct.unpack_from(FORMATS[scalar.dtype.name], raw, 8 * place)[0])
        values = dict(zip(program.sizes, words[len(tensors) + len(scalars) :], strict=False))
        by_name = {size.name: value for size, value in values.items()}
        views = [
            _view(pointer, tensor, values, layout, by_name)
            for pointer, tensor, layout in zip(words, tensors, layouts, strict=False)
        ]
        by_name["threads"] = words[-2]
        outcome = run(views[:count], views[count:], scalars, by_name)
        if outcome is None:
            return 0
        code, status = outcome
        (ctypes.c_int64 * 4).from_address(words[-1])[:3] = status
        return code

    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(entry)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    texts = {"llvm": lambda: "; llvm", "asm": lambda: "# asm"}
    return Kernel(program, CtypesCaller(program, address, callback), texts, {"emit": 0.001})


def _view(pointer: int, tensor: Tensor, sizes, layout: str, by_name) -> np.ndarray:
    dtype = to_numpy(tensor.dtype)
    shape = tuple(evaluate(form, sizes) for form in tensor.shape)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if layout != "contiguous":
        for axis in range(len(shape)):
            strides[axis] = by_name.get(f"{tensor.name}.stride{axis}", 1)
    if prod(shape) == 0:
        return np.empty(shape, dtype)
    spans = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = sum(span for span in spans if span < 0) * dtype.itemsize
    high = (sum(span for span in spans if span > 0) + 1) * dtype.itemsize
    memory = (ctypes.c_char * (high - low)).from_address(pointer + low)
    return np.ndarray(shape, dtype, memory, -low, [s * dtype.itemsize for s in strides])


def compiled(definition: Definition, run: Run, **keywords) -> CompiledFunction:
    """Return a callable over Python kernels; ``.builds`` lists the layouts asked for."""
    builds: list[tuple[str, ...]] = []
    body = keywords.pop("body", EMPTY)

    def build(layouts, choice):
        builds.append(layouts)
        return python_kernel(definition, layouts, run, body)

    conditions = keywords.pop("conditions", ())
    function = CompiledFunction(definition, build, bind_sizes, conditions=conditions, **keywords)
    function.builds = builds
    return function
