"""Attention of 12 heads of 64 numbers, plain and causal, in f32.

`tensorlang` is `tl.nn.attention`; `definition` is softmax between two products, as users write it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import (
    jax_call,
    onnx_graph,
    onnxruntime_call,
    openvino_call,
    torch_tensors,
    torch_with,
)
from benchmarks.workload import OURS, Call, Programs, Workload

_HEADS, _DEPTH = 12, 64
_SCALE = 1 / 8


def _programs(length: int, causal: bool, threads: int) -> Programs:
    q, k, v = (
        np.random.default_rng(seed).standard_normal((1, _HEADS, length, _DEPTH), dtype=np.float32)
        for seed in range(3)
    )

    def torch(compiled: bool) -> Call:
        library = torch_with(threads)
        given = torch_tensors(q, k, v)
        if not compiled:
            native = library.nn.functional.scaled_dot_product_attention
            return partial(native, *given, is_causal=causal)
        mask = library.full((length, length), float("-inf")).triu(1) if causal else 0.0

        def attention(q: Any, k: Any, v: Any) -> Any:
            return library.softmax(q @ k.transpose(-1, -2) * _SCALE + mask, -1) @ v

        return partial(library.compile(attention, dynamic=False), *given)

    def ours() -> Call:
        import tensorlang as tl

        return partial(tl.nn.attention, q, k, v, causal=causal, out=np.zeros_like(q))

    def definition() -> Call:
        return partial(_define_attention(causal), q[0], k[0], v[0], out=np.zeros_like(q[0]))

    def model() -> bytes:
        mask = np.triu(np.full((length, length), -np.inf, np.float32), 1)
        constants = {"scale": np.array(_SCALE, np.float32)} | ({"mask": mask} if causal else {})
        scores = "masked" if causal else "scaled"
        nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = [
            ("Transpose", ("K",), "KT", {"perm": [0, 1, 3, 2]}),
            ("MatMul", ("Q", "KT"), "scores", {}),
            ("Mul", ("scores", "scale"), "scaled", {}),
            *([("Add", ("scaled", "mask"), "masked", {})] if causal else []),
            ("Softmax", (scores,), "weights", {"axis": -1}),
            ("MatMul", ("weights", "V"), "Y", {}),
        ]
        return onnx_graph(nodes, {"Q": q.shape, "K": k.shape, "V": v.shape}, q.shape, constants)

    def jax() -> Call:
        import jax

        mask = np.triu(np.full((length, length), -np.inf, np.float32), 1) if causal else 0.0

        def attention(q: Any, k: Any, v: Any) -> Any:
            scores = jax.numpy.einsum("bhsd,bhtd->bhst", q, k) * _SCALE + mask
            return jax.nn.softmax(scores, -1) @ v

        return jax_call(attention, q, k, v)

    inputs = {"Q": q, "K": k, "V": v}
    return {
        "torch": partial(torch, compiled=False),
        "torch.compile": partial(torch, compiled=True),
        "onnxruntime": lambda: onnxruntime_call(model(), inputs, np.zeros_like(q), threads),
        "openvino": lambda: openvino_call(model(), inputs, threads),
        "jax": jax,
        OURS: ours,
        "tensorlang, definition": definition,
    }


def _define_attention(causal: bool) -> Any:
    import tensorlang as tl

    H, S, T, D = tl.dims("H S T D")

    @tl.compute
    def attention(q: tl.f32[H, S, D], k: tl.f32[H, T, D], v: tl.f32[H, T, D]):
        score = tl.tensor(
            tl.sum(q[h, i, d] * k[h, j, d] for d in D) * _SCALE for h in H for i in S for j in T
        )
        if causal:
            score = tl.tensor(
                tl.where(j <= i, score[h, i, j], -tl.inf) for h in H for i in S for j in T
            )
        top = tl.tensor(tl.max(score[h, i, j] for j in T) for h in H for i in S)
        e = tl.tensor(tl.exp(score[h, i, j] - top[h, i]) for h in H for i in S for j in T)
        total = tl.tensor(tl.sum(e[h, i, j] for j in T) for h in H for i in S)
        mixed = tl.tensor(
            tl.sum(e[h, i, j] * v[h, j, d] for j in T) for h in H for i in S for d in D
        )
        return tl.tensor(mixed[h, i, d] / total[h, i] for h in H for i in S for d in D)

    return attention


def _workload(length: int, causal: bool) -> Workload:
    operations = 4.0 * _HEADS * length * length * _DEPTH
    return Workload(
        f"attention {length}" + (" causal" if causal else ""),
        partial(_programs, length, causal),
        operations=operations,
    )


WORKLOADS = [_workload(length, causal) for causal in (False, True) for length in (128, 512)]
