"""The peers, set up for a number of threads, each imported where it is used.

Input:  ``bind_onnx(onnxruntime_model("MatMul", ...), {"A": a}, y)``
Output: a call that runs the model into ``y`` and returns it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.workload import Call

PACKAGES = (
    "numpy", "torch", "onnxruntime", "openvino", "halide", "numba", "numexpr", "jax",
    "apache-tvm", "scipy",
)  # fmt: skip
"""The peers, as their packages are called."""

_OPSET, _IR_VERSION = 17, 8


def torch_with(threads: int) -> Any:
    """Return PyTorch, without gradients."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def torch_tensors(*arrays: np.ndarray) -> list[Any]:
    """Return PyTorch's views of arrays."""
    import torch

    return [torch.from_numpy(array) for array in arrays]


def onnx_model(
    operator: str,
    inputs: Mapping[str, tuple[int, ...]],
    output: tuple[int, ...],
    constants: Mapping[str, np.ndarray] | None = None,
    **attributes: Any,
) -> bytes:
    """Return a model of one node, whose inputs are followed by its constants."""
    return onnx_graph(
        [(operator, (*inputs, *(constants or {})), "Y", attributes)], inputs, output, constants
    )


def onnx_graph(
    nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]],
    inputs: Mapping[str, tuple[int, ...]],
    output: tuple[int, ...],
    constants: Mapping[str, np.ndarray] | None = None,
) -> bytes:
    """Return a model of f32 tensors: nodes of (operator, inputs, output, attributes), and ``Y``."""
    from onnx import TensorProto, helper, numpy_helper

    def describe(name: str, shape: tuple[int, ...]) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        [helper.make_node(kind, names, [into], **more) for kind, names, into, more in nodes],
        "workload",
        [describe(name, shape) for name, shape in inputs.items()],
        [describe("Y", output)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    opset = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION)
    return model.SerializeToString()


def onnxruntime_call(
    model: bytes, inputs: Mapping[str, np.ndarray], output: np.ndarray, threads: int
) -> Call:
    """Return a call of ONNX Runtime that writes into ``output`` without copies."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    address, kind = output.ctypes.data, output.dtype.type
    binding.bind_output("Y", "cpu", 0, kind, output.shape, address)

    def call() -> np.ndarray:
        session.run_with_iobinding(binding)
        return output

    return call


def openvino_call(model: bytes, inputs: Mapping[str, np.ndarray], threads: int) -> Call:
    """Return a call of OpenVINO in f32 on inputs that it shares."""
    import openvino

    core = openvino.Core()
    hints = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = core.compile_model(core.read_model(model), "CPU", hints).create_infer_request()
    for place, array in enumerate(inputs.values()):
        request.set_input_tensor(place, openvino.Tensor(array, shared_memory=True))
    result = request.get_output_tensor(0)

    def call() -> np.ndarray:
        request.infer()
        return result.data

    return call


def jax_call(function: Any, *arrays: np.ndarray) -> Call:
    """Return a call of a function that JAX compiled, on its own arrays."""
    import jax

    compiled, given = jax.jit(function), [jax.numpy.asarray(array) for array in arrays]
    return lambda: compiled(*given).block_until_ready()
