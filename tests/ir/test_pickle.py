import pickle

from tensorlang.dtypes import f32, i64
from tensorlang.ir.affine import Product, Var, affine, evaluate, minimum, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import Load, expr_variables, value_atom
from tensorlang.ir.lowered import Buffer, FlatLoad


def values_by_name(index, numbers):
    return {variable: numbers[variable.name] for variable in variables_of(index)}


def test_a_product_stays_an_atom():
    i, n = Var("i"), Var("n")
    index = affine(i) * affine(n) * 3 + 2
    copy = pickle.loads(pickle.dumps(index))
    assert isinstance(copy.terms[0][0], Product)
    assert evaluate(copy, values_by_name(copy, {"i": 5, "n": 7})) == 107


def test_copies_are_canonical_again():
    # The pickle names b before a, so that the copies are made in the other order.
    a, b = Var("a"), Var("b")
    form = affine(a) * affine(b)
    for index in (form, minimum(affine(a) + 1, affine(b) * 2)):
        copy_b, copy_a, copy = pickle.loads(pickle.dumps((b, a, index)))
        again = (
            affine(copy_a) * affine(copy_b)
            if index is form
            else minimum(affine(copy_a) + 1, affine(copy_b) * 2)
        )
        assert copy == again
        assert str(copy) == str(index)


def test_variables_inside_flat_loads_are_seen():
    i = Var("i")
    table = Buffer("table", i64, affine(10))
    load = FlatLoad(table, affine(i) + 1)
    assert expr_variables(load) == {i}
    assert value_atom(load).variables == {i}


def test_copy_of_a_tensor_is_shared():
    x = Tensor("x", (affine(4),), f32)
    first, second = pickle.loads(pickle.dumps((Load(x, (affine(1),)), Load(x, (affine(2),)))))
    assert first.tensor is second.tensor
    assert first.tensor.dtype is f32
