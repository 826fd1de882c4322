"""Arrays of other libraries: as NumPy arrays over the same memory, and results as theirs.

Input:  a tensor of PyTorch, an array of JAX, a ``memoryview``, an ``array.array``
Output: an ndarray that shares its memory; ``like`` turns a result into what the arguments were

The ways in, in this order: DLPack (``__dlpack__``, for memory of the processor only), NumPy's own
protocols, the buffer protocol. No library is imported: what can be passed has been imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeAlias, cast

import numpy as np

from tensorlang.dtypes import bf16, to_numpy

Array: TypeAlias = np.ndarray[Any, Any]

_CPU_DEVICES = (1, 3, 11)  # DLPack's kDLCPU, and host memory pinned for CUDA and for ROCm
_DEVICES = {2: "a CUDA device", 4: "an OpenCL device", 7: "a Vulkan device", 8: "a Metal device",
            10: "a ROCm device", 13: "CUDA managed memory", 14: "a oneAPI device"}  # fmt: skip

_TEXT = (str, bytes, bytearray)


def is_foreign_array(value: object) -> bool:
    """Tell whether ``value`` is an array of another library, or a buffer of numbers."""
    return hasattr(value, "__dlpack__") or _is_buffer(value)


def as_numpy_view(value: Any) -> Array:
    """Return an array of any kind as NumPy's, without a copy.

    Raises
    ------
    TypeError
        For what is no array; for memory of a device; for a tensor that requires a gradient, which
        would not see what is computed from it.

    Examples
    --------
    >>> import array
    >>> as_numpy_view(array.array("f", [1, 2]))
    array([1., 2.], dtype=float32)

    """
    try:
        if hasattr(value, "__dlpack__"):
            _check_device(value)
            return _from_torch(value) if _is_torch(value) else _from_dlpack(value)
        if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
            return np.asarray(value)
        if not isinstance(value, _TEXT):
            return np.asarray(memoryview(value))
    except (BufferError, RuntimeError, ValueError) as error:
        raise TypeError(str(error)) from error
    raise TypeError("it has neither DLPack nor the buffer protocol")


def like(results: tuple[Array, ...], arguments: Iterable[Any]) -> tuple[Any, ...]:
    """Return results as the kind of the first argument that is not NumPy's; the memory is shared.

    Arguments of other kinds, plain buffers among them, give NumPy arrays.
    """
    for value in arguments:
        if isinstance(value, np.ndarray | np.generic | int | float) or value is None:
            continue
        if _is_torch(value):
            return tuple([_to_torch(result) for result in results])
        namespace = getattr(value, "__array_namespace__", None)
        if namespace is not None:
            return tuple([_to_namespace(namespace(), result) for result in results])
    return results


def _check_device(value: Any) -> None:
    kind, number = value.__dlpack_device__()
    if int(kind) not in _CPU_DEVICES:
        device = _DEVICES.get(int(kind), f"a device of DLPack's kind {int(kind)}")
        raise TypeError(
            f"it lies in the memory of {device} (number {number}): copy it to the host first"
        )


def _is_torch(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _from_torch(tensor: Any) -> Array:
    if tensor.requires_grad:
        raise TypeError("it requires a gradient, which would not flow through: pass x.detach()")
    torch: Any = sys.modules["torch"]
    if tensor.dtype is torch.bfloat16:  # NumPy knows it only through ml_dtypes
        return tensor.view(torch.int16).numpy().view(to_numpy(bf16))
    return tensor.numpy()


def _to_torch(array: Array) -> Any:
    torch: Any = sys.modules["torch"]
    if array.dtype == to_numpy(bf16):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _from_dlpack(value: Any) -> Array:
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):
        if not hasattr(value, "__array__"):  # the way in for element types that DLPack lacks
            raise
        return np.asarray(value)


def _to_namespace(namespace: Any, array: Array) -> Any:
    try:
        return namespace.from_dlpack(array)
    except (BufferError, TypeError):  # an element type that DLPack, or NumPy's part in it, lacks
        return namespace.asarray(array)


def _is_buffer(value: object) -> bool:
    if isinstance(value, _TEXT):
        return False
    try:
        memoryview(cast("Any", value))
    except TypeError:
        return False
    return True
