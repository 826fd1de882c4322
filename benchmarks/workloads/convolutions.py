"""Convolutions in f32, one image, NCHW in and out: layers of ResNet-50 and MobileNetV2.

Filters are constants for every program but `tensorlang, any sizes`. The graphs know all sizes;
`rtol=1e-4` lets tensorlang choose Winograd's algorithm, `strict` does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import (
    jax_call,
    onnx_model,
    onnxruntime_call,
    openvino_call,
    torch_tensors,
    torch_with,
)
from benchmarks.workload import Call, Programs, Workload


@dataclass(frozen=True, slots=True)
class Layer:
    """A square convolution of ``inputs`` channels of ``size`` x ``size`` pixels."""

    name: str
    inputs: int
    size: int
    outputs: int
    window: int
    stride: int = 1
    groups: int = 1

    @property
    def padding(self) -> int:
        """The zeros on each side, so that stride 1 keeps the size."""
        return self.window // 2

    @property
    def output_size(self) -> int:
        """Rows and columns of the result."""
        return (self.size + 2 * self.padding - self.window) // self.stride + 1

    @property
    def operations(self) -> float:
        """Operations of the definition."""
        each = self.inputs // self.groups * self.window**2
        return 2.0 * self.outputs * self.output_size**2 * each


LAYERS = (
    Layer("3x3 64 @56", 64, 56, 64, 3),
    Layer("3x3 128 @28", 128, 28, 128, 3),
    Layer("3x3 256 @14", 256, 14, 256, 3),
    Layer("3x3 512 @7", 512, 7, 512, 3),
    Layer("3x3 stride 2 128 @56", 128, 56, 128, 3, stride=2),
    Layer("7x7 stride 2 3->64 @224", 3, 224, 64, 7, stride=2),
    Layer("1x1 64->256 @56", 64, 56, 256, 1),
    Layer("1x1 1024->256 @14", 1024, 14, 256, 1),
    Layer("1x1 64->384 @14", 64, 14, 384, 1),
    Layer("1x1 512->2048 @7", 512, 7, 2048, 1),
    Layer("depthwise 3x3 144 @56", 144, 56, 144, 3, groups=144),
    Layer("depthwise 3x3 stride 2 144 @56", 144, 56, 144, 3, stride=2, groups=144),
    Layer("depthwise 3x3 384 @14", 384, 14, 384, 3, groups=384),
)


def _programs(layer: Layer, threads: int) -> Programs:
    x = np.random.default_rng(0).standard_normal(
        (1, layer.inputs, layer.size, layer.size), dtype=np.float32
    )
    filters = (layer.outputs, layer.inputs // layer.groups, layer.window, layer.window)
    w = np.random.default_rng(1).standard_normal(filters, dtype=np.float32)
    shape = (1, layer.outputs, layer.output_size, layer.output_size)
    how = {"stride": layer.stride, "padding": layer.padding, "groups": layer.groups}

    def any_sizes() -> Call:
        import tensorlang as tl

        return partial(tl.nn.conv2d, x, w, **how, out=np.zeros(shape, np.float32))

    def graph(**options: Any) -> Call:
        import tensorlang as tl

        g = tl.Graph("layer")
        image = g.input("x", tl.f32[x.shape])
        g.output(tl.nn.conv2d(image, g.constant(w), **how))
        return partial(tl.compile(g, **options), x)

    def torch(channels_last: bool) -> Call:
        library = torch_with(threads)
        image, filters = torch_tensors(x, w)
        if channels_last:
            last = library.channels_last
            image = image.contiguous(memory_format=last)
            filters = filters.contiguous(memory_format=last)
        return partial(library.nn.functional.conv2d, image, filters, **how)

    def model() -> bytes:
        return onnx_model(
            "Conv",
            {"X": x.shape},
            shape,
            {"W": w},
            kernel_shape=[layer.window] * 2,
            strides=[layer.stride] * 2,
            pads=[layer.padding] * 4,
            group=layer.groups,
        )

    def jax() -> Call:
        import jax

        pads = [(layer.padding, layer.padding)] * 2

        def convolve(image: Any, filters: Any) -> Any:
            return jax.lax.conv_general_dilated(
                image, filters, (layer.stride,) * 2, pads, feature_group_count=layer.groups
            )

        return jax_call(convolve, x, w)

    programs: Programs = {
        "torch": partial(torch, channels_last=False),
        "torch channels_last": partial(torch, channels_last=True),
        "onnxruntime": lambda: onnxruntime_call(
            model(), {"X": x}, np.zeros(shape, np.float32), threads
        ),
        "openvino": lambda: openvino_call(model(), {"X": x}, threads),
        "jax": jax,
        "tensorlang, any sizes": any_sizes,
        "tensorlang graph, strict": partial(graph, precision="strict"),
    }
    if layer.window == 3 and layer.stride == layer.groups == 1:
        programs["tensorlang graph, rtol=1e-4"] = partial(graph, rtol=1e-4)
    return programs


WORKLOADS = [
    Workload(layer.name, partial(_programs, layer), operations=layer.operations) for layer in LAYERS
]
