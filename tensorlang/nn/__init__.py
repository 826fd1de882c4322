"""``tl.nn``: operators written in the language, with the names and defaults of PyTorch's."""

from tensorlang.nn.activations import relu, sigmoid, softmax, tanh
from tensorlang.nn.convolution import conv2d, max_pool2d
from tensorlang.nn.elementwise import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    subtract,
)
from tensorlang.nn.normalization import layer_norm
from tensorlang.nn.products import linear, matmul
from tensorlang.nn.shapes import flatten, take_slice, transpose

__all__ = [
    "add",
    "conv2d",
    "divide",
    "equal",
    "flatten",
    "greater",
    "greater_equal",
    "layer_norm",
    "less",
    "less_equal",
    "linear",
    "matmul",
    "max_pool2d",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "relu",
    "sigmoid",
    "softmax",
    "subtract",
    "take_slice",
    "tanh",
    "transpose",
]
