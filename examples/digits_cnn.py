"""A convolution net on handwritten digits: trained with NumPy, run as a graph.

Two convolutions, a pooling, and a linear layer. The graph must predict what the trainer predicts
for every held-out digit; it is timed beside NumPy, and beside itself with its operators left
apart. Needs scikit-learn, for the images.

Run it as ``python examples/digits_cnn.py [CHANNELS EPOCHS]``.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tensorlang as tl
from tensorlang.cli.measure import interleave

B = tl.dim("B")
Weights = dict[str, np.ndarray]


def windows(x: np.ndarray) -> np.ndarray:
    """Return each 3 x 3 window of padded images as a row: [B, H, W, C * 9]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    batch, channels, height, width = x.shape
    return seen.transpose(0, 2, 3, 1, 4, 5).reshape(batch, height, width, channels * 9)


def forward(p: Weights, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the scores of the classes, after what the backward pass needs."""
    first = windows(x)
    a = np.maximum(first @ p["w1"].reshape(len(p["w1"]), -1).T + p["b1"], 0).transpose(0, 3, 1, 2)
    second = windows(a)
    c = np.maximum(second @ p["w2"].reshape(len(p["w2"]), -1).T + p["b2"], 0).transpose(0, 3, 1, 2)
    batch, channels, height, width = c.shape
    blocks = c.reshape(batch, channels, height // 2, 2, width // 2, 2)
    pooled = blocks.max(axis=(3, 5))
    flat = pooled.reshape(batch, -1)
    return first, a, second, c, pooled, flat, flat @ p["w3"].T + p["b3"]


def backward(p: Weights, x: np.ndarray, labels: np.ndarray) -> Weights:
    """Return the gradients of the cross entropy."""
    first, a, second, c, pooled, flat, scores = forward(p, x)
    d = np.exp(scores - scores.max(axis=1, keepdims=True))
    d /= d.sum(axis=1, keepdims=True)
    d[np.arange(len(x)), labels] -= 1
    d /= len(x)
    gradients = {"w3": d.T @ flat, "b3": d.sum(axis=0)}
    d_pooled = (d @ p["w3"]).reshape(pooled.shape)
    enlarged = pooled.repeat(2, axis=2).repeat(2, axis=3)
    d_c = d_pooled.repeat(2, axis=2).repeat(2, axis=3) * (c == enlarged) * (c > 0)
    rows = d_c.transpose(0, 2, 3, 1)
    gradients["w2"] = np.einsum("bhwo,bhwk->ok", rows, second, optimize=True).reshape(p["w2"].shape)
    gradients["b2"] = rows.sum(axis=(0, 1, 2))
    turned = p["w2"][:, :, ::-1, ::-1].transpose(1, 0, 2, 3)  # the transposed convolution
    d_a = (windows(d_c) @ turned.reshape(len(turned), -1).T).transpose(0, 3, 1, 2) * (a > 0)
    rows = d_a.transpose(0, 2, 3, 1)
    gradients["w1"] = np.einsum("bhwo,bhwk->ok", rows, first, optimize=True).reshape(p["w1"].shape)
    gradients["b1"] = rows.sum(axis=(0, 1, 2))
    return gradients


def train(channels: int, epochs: int) -> tuple[Weights, np.ndarray, np.ndarray]:
    """Return trained weights, and images with labels that were held out."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    x, unseen, y, answers = train_test_split(images, labels, test_size=0.3, random_state=0)
    rng = np.random.default_rng(0)

    def start(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    p = {
        "w1": start(channels, 1, 3, 3), "b1": np.zeros(channels, np.float32),
        "w2": start(2 * channels, channels, 3, 3), "b2": np.zeros(2 * channels, np.float32),
        "w3": start(10, 32 * channels), "b3": np.zeros(10, np.float32),
    }  # fmt: skip
    speed = {name: np.zeros_like(value) for name, value in p.items()}
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for chosen in np.array_split(order, len(x) // 32):
            for name, gradient in backward(p, x[chosen], y[chosen]).items():
                speed[name] = 0.9 * speed[name] - 0.05 * gradient
                p[name] += speed[name]
    return p, unseen, answers


@tl.graph
def digits_cnn(x: tl.f32[B, 1, 8, 8], w1, b1, w2, b2, w3, b3):
    """Return the probabilities of the ten digits."""
    h = tl.nn.relu(tl.nn.conv2d(x, w1, b1, padding=1))
    h = tl.nn.relu(tl.nn.conv2d(h, w2, b2, padding=1))
    h = tl.nn.flatten(tl.nn.max_pool2d(h, kernel_size=2), start_axis=1)
    return tl.nn.softmax(tl.nn.linear(h, w3, b3))


def as_graph(p: Weights) -> tl.Graph:
    """Return the net with its weights as constants."""
    g = tl.Graph("digits_cnn")
    images = g.input("images", tl.f32[B, 1, 8, 8])
    g.output(digits_cnn(images, **{name: g.constant(value, name) for name, value in p.items()}))
    return g


def main(channels: int = 8, epochs: int = 6) -> None:
    """Check the predictions, then print the times per image."""
    p, unseen, answers = train(channels, epochs)
    g = as_graph(p)
    fused = tl.compile(g)
    with tl.PassContext(disable=["fuse_elementwise"]):
        apart = tl.compile(g)
    print(g, fused, sep="\n\n", end="\n\n")

    scores = forward(p, unseen)[-1]
    found = fused(unseen)
    np.testing.assert_array_equal(found.argmax(axis=1), scores.argmax(axis=1))
    right = (found.argmax(axis=1) == answers).mean()
    print(
        f"the same digits as the trainer for all {len(unseen)} held-out images ({right:.1%} right)"
    )

    for count in (1, len(unseen)):
        images = unseen[:count]
        programs = {
            "NumPy": lambda images=images: forward(p, images)[-1],
            "graph, unfused": lambda images=images: apart(images),
            "graph": lambda images=images: fused(images),
        }
        for name, timing in interleave(programs, rounds=21).items():
            print(f"{name:16} batch {count:4}: {timing.lowest * 1e3 / count:8.5f} ms per image")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
