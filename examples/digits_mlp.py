"""A multilayer perceptron on handwritten digits: trained by scikit-learn, run as a graph.

The graph must predict what the trainer predicts for every held-out digit; it is timed beside
NumPy, and beside itself with its operators left apart. Needs scikit-learn.

Run it as ``python examples/digits_mlp.py [HIDDEN EPOCHS]``.
"""

import sys
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import tensorlang as tl
from tensorlang.cli.measure import interleave

B = tl.dim("B")


def train(hidden: int, epochs: int) -> tuple[MLPClassifier, np.ndarray]:
    """Return a trained classifier and the images that it has not seen, as f32[B, 64]."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    seen, unseen, answers, _ = train_test_split(images, labels, test_size=0.3, random_state=0)
    trainer = MLPClassifier((hidden, hidden // 2), max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trainer.fit(seen, answers)
    return trainer, unseen


def as_graph(trainer: MLPClassifier) -> tl.Graph:
    """Return the classifier as a graph in which the weights are constants."""
    g = tl.Graph("digits_mlp")
    h = g.input("images", tl.f32[B, 64])
    layers = list(zip(trainer.coefs_, trainer.intercepts_, strict=True))
    for number, (weights, bias) in enumerate(layers, start=1):
        w = g.constant(weights.astype(np.float32), f"w{number}")
        b = g.constant(bias.astype(np.float32), f"b{number}")
        h = h @ w + b
        h = tl.nn.relu(h) if number < len(layers) else tl.nn.softmax(h)
    g.output(h)
    return g


def in_numpy(trainer: MLPClassifier, images: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, computed with NumPy."""
    *hidden, last = zip(trainer.coefs_, trainer.intercepts_, strict=True)
    for weights, bias in hidden:
        images = np.maximum(images @ weights.astype(np.float32) + bias.astype(np.float32), 0)
    scores = images @ last[0].astype(np.float32) + last[1].astype(np.float32)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main(hidden: int = 256, epochs: int = 30) -> None:
    """Check the predictions, then print the times per image."""
    trainer, unseen = train(hidden, epochs)
    g = as_graph(trainer)
    fused = tl.compile(g)
    with tl.PassContext(disable=["fuse_elementwise"]):
        apart = tl.compile(g)
    print(g, fused, sep="\n\n", end="\n\n")

    found, expected = fused(unseen), trainer.predict_proba(unseen)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_array_equal(found.argmax(axis=1), trainer.predict(unseen))
    print(f"the same digits as the trainer for all {len(unseen)} held-out images")

    for count in (1, len(unseen)):
        images = unseen[:count]
        programs = {
            "NumPy": lambda images=images: in_numpy(trainer, images),
            "graph, unfused": lambda images=images: apart(images),
            "graph": lambda images=images: fused(images),
        }
        for name, timing in interleave(programs, rounds=21).items():
            print(f"{name:16} batch {count:4}: {timing.lowest * 1e3 / count:8.5f} ms per image")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
