"""Random operators, as source text: a few stages, each a map, reduction, scan, pad or gather.

Input:  a ``Random``
Output: ``Sample``: the text, the operator made from it, what its parameters hold, and how far
        right results may differ
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import tensorlang as tl
from tests.fuzz.expressions import DTYPES as NUMBERS
from tests.fuzz.expressions import convert, exact, expression, literal
from tests.fuzz.indices import Index, Loop, draw_index
from tests.fuzz.values import (
    FLOATS,
    HALVES,
    INTEGERS,
    LARGEST,
    UNIT,
    UNSIGNED,
    Value,
    add,
    clipped,
    either,
    rounded,
)

DTYPES = (*["f32", "f32", "f32", "f64", "i32", "i64", "bool"] * 2, *NUMBERS[-8:])
LONGEST = 17  # the largest size that is drawn; bounds of sums rely on it


@dataclass(frozen=True)
class Held:
    """A tensor of the operator: name, shape as texts, and its elements as a ``Value``."""

    name: str
    shape: tuple[str, ...]
    element: Value
    below: str = ""  # for indices: the extent below which all elements lie


@dataclass(frozen=True)
class Sample:
    """A random operator and all that is needed to call it and to judge its results."""

    text: str
    operator: tl.Operator
    inputs: tuple[Held, ...]
    scalars: tuple[Held, ...]
    outputs: tuple[Held, ...]
    tensors: tuple[Held, ...]  # inputs, and what every line makes
    dims: tuple[str, ...]
    orders_matter: bool  # infinities and NaN may not be given


def longest(extent: str) -> int:
    return max(1, eval(extent, {name: LONGEST for name in "MNK"}))


class Maker:
    """Writes one operator, stage by stage."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.dims = tuple("MNK"[: random.choice([1, 2, 2, 3])])
        self.inputs: list[Held] = []
        self.scalars: list[Held] = []
        self.tensors: list[Held] = []
        self.lines: list[str] = []
        self.orders_matter = False
        for number in range(random.choice([1, 2, 2, 3])):
            self._add_input("ABC"[number])
        missing = [d for d in self.dims if all(d not in held.shape for held in self.inputs)]
        if missing:
            self._add_input("D", tuple(missing))

    # --- parameters ----------------------------------------------------------------------------

    def _add_input(self, name: str, shape: tuple[str, ...] | None = None) -> None:
        random = self.random
        if shape is None:
            rank = random.choice([1, 2, 2, 2, 3])
            shape = tuple(random.choice([*self.dims * 3, "2", "3"]) for _ in range(rank))
        dtype = random.choice(DTYPES)
        element = Value("", dtype, 4.0 if dtype != "bool" else 1.0)
        if dtype in INTEGERS and random.random() < 0.2:
            element = Value("", dtype, LARGEST[dtype])
        held = Held(name, shape, element)
        self.inputs.append(held)
        self.tensors.append(held)

    def _gather(self, loops: list[Loop]) -> Callable[[str], str | None]:
        def gather(extent: str) -> str | None:
            known = [h for h in self.inputs if h.below == extent]
            for held in known:
                fitting = [loop.name for loop in loops if (loop.extent,) == held.shape]
                if fitting:
                    return f"{held.name}[{self.random.choice(fitting)}]"
            usable = [loop for loop in loops if loop.extent in self.dims]
            if not usable or len(known) > 1:
                return None
            loop = self.random.choice(usable)
            number = sum(1 for held in self.inputs if held.below)
            dtype = self.random.choice(["i32", "i64", "i64", *INTEGERS])
            held = Held(f"ids{number}", (loop.extent,), Value("", dtype, 0.0), extent)
            self.inputs.append(held)
            return f"{held.name}[{loop.name}]"

        return gather

    # --- leaves --------------------------------------------------------------------------------

    def load_from(self, held: Held, loops: list[Loop]) -> Value:
        gather = self._gather(loops)
        indices = [draw_index(self.random, extent, loops, gather) for extent in held.shape]
        return self._loaded(held, indices)

    def _loaded(self, held: Held, indices: list[Index]) -> Value:
        e = held.element
        text = f"{held.name}[{', '.join(i.text for i in indices)}]" if indices else held.name
        conditions = [c for index in indices for c in index.conditions]
        if conditions:
            other = "False" if e.dtype == "bool" else "0"
            text = f"tl.where({' & '.join(conditions)}, {text}, {other})"
        return Value(text, e.dtype, e.bound, e.error, e.step)

    def leaf(self, loops: list[Loop]) -> Callable[[str], Value]:
        random = self.random

        def load(dtype: str) -> Value:
            drawn = random.random()
            if drawn < 0.08:
                return literal(random, dtype)
            if drawn < 0.14 and loops and dtype != "bool":
                loop = random.choice(loops)
                bound = float(longest(loop.extent))
                return Value(f"tl.cast({loop.name}, tl.{dtype})", dtype, bound)
            if drawn < 0.18 and dtype != "bool":
                return self._scalar(dtype)
            if self.tensors[-1] not in self.inputs and random.random() < 0.4:
                return convert(random, self.load_from(self.tensors[-1], loops), dtype)
            fitting = [h for h in self.tensors if h.element.dtype == dtype]
            if fitting and random.random() < 0.85:
                weights = [1 + 2 * place for place in range(len(fitting))]
                return self.load_from(random.choices(fitting, weights)[0], loops)
            weights = [1 + 2 * place for place in range(len(self.tensors))]
            held = random.choices(self.tensors, weights)[0]
            return convert(random, self.load_from(held, loops), dtype)

        return load

    def _scalar(self, dtype: str) -> Value:
        known = [held for held in self.scalars if held.element.dtype == dtype]
        if not known:
            known = [Held(f"alpha_{dtype}", (), Value("", dtype, 4.0))]
            self.scalars += known
        return Value(known[0].name, dtype, 4.0)

    # --- stages --------------------------------------------------------------------------------

    def _extent(self) -> str:
        random = self.random
        dim = random.choice(self.dims)
        drawn = random.random()
        if drawn < 0.78:
            return dim
        if drawn < 0.88:
            return random.choice(["2", "3", "4"])
        forms = ["{} // 2", "({} + 1) // 2", "2 * {}", "{} + 2", "{} - 2"]
        return random.choice(forms).format(dim)

    def _loops(self, ranks: tuple[int, ...], names: str) -> list[Loop]:
        """Draw axes, mostly those of a tensor that is there."""
        random = self.random
        if random.random() < 0.6:
            shape = list(random.choice(self.tensors[-3:]).shape)
            random.shuffle(shape)
            if len(shape) in ranks:
                return [Loop(n, extent) for n, extent in zip(names, shape, strict=False)]
        return [Loop(names[n], self._extent()) for n in range(random.choice(ranks))]

    def add_stage(self) -> None:
        random = self.random
        name = f"t{sum(1 for held in self.tensors if held.name[0] == 't')}"
        kinds = (
            ["map"] * 4
            + ["follow"] * 5
            + ["reduce"] * 6
            + ["inner", "inner", "scan", "scan", "pad", "tuple", "order", "order", "scatter"]
        )
        match random.choice(kinds):
            case "map":
                self._map(name)
            case "follow":
                self._follow(name)
            case "reduce":
                self._reduce(name)
            case "inner":
                self._inner(name)
            case "scan":
                self._scan(name)
            case "pad":
                self._pad(name)
            case "order":
                self._order(name)
            case "scatter":
                self._scatter(name)
            case _:
                self._tuple(name)

    def _keep(self, name: str, loops: list[Loop], body: str, element: Value) -> None:
        if loops:
            body = f"tl.tensor({body}{_clauses(loops)})"
        self.lines.append(f"{name} = {body}")
        self.tensors.append(Held(name, tuple(loop.extent for loop in loops), element))

    def _map(self, name: str) -> None:
        loops = self._loops((1, 1, 2, 2, 2, 3), "ijl")
        depth = self.random.choice([1, 2, 2, 3])
        value = expression(self.random, self.leaf(loops), self.random.choice(DTYPES), depth)
        self._keep(name, loops, value.text, value)

    def _follow(self, name: str) -> None:
        """A map of the last tensor, element by element."""
        held = self.tensors[-1]
        loops = [Loop(n, extent) for n, extent in zip("ijl", held.shape, strict=False)]
        here = self._loaded(held, [Index(loop.name) for loop in loops])
        other = self.leaf(loops)

        def load(dtype: str) -> Value:
            drawn = self.random.random()
            return convert(self.random, here, dtype) if drawn < 0.6 else other(dtype)

        value = expression(self.random, load, self.random.choice(DTYPES), 2)
        if held.name not in value.text and held.element.dtype != "bool":
            value = add(here, convert(self.random, value, held.element.dtype))
        self._keep(name, loops, value.text, value)

    def _reduce(self, name: str) -> None:
        loops = self._loops((0, 1, 1, 2), "ij")
        body, value = self._reduction(loops)
        self._keep(name, loops, body, value)

    def _inner(self, name: str) -> None:
        """A reduction as a part of an expression."""
        loops = self._loops((1, 1, 2), "ij")
        body, value = self._reduction(loops)
        whole = Value(body, value.dtype, value.bound, value.error, value.step)
        if value.dtype == "bool":
            self._keep(name, loops, f"(~{body})", value)
            return
        other = expression(self.random, self.leaf(loops), value.dtype, 1)
        value = add(whole, other, self.random.choice("+-"))
        self._keep(name, loops, value.text, value)

    def _reduction(self, loops: list[Loop]) -> tuple[str, Value]:
        """Return a reduction inside ``loops``: text and value."""
        random = self.random
        inner = self._loops((1, 1, 1, 2), "kr")
        clauses = _clauses(inner)
        triangles = [n for n, loop in enumerate(inner) for o in loops if o.extent == loop.extent]
        kind = random.choice(
            ["sum", "sum", "sum", "sum", "max", "min", "prod", "argmax", "argmin", "any", "all",
             "custom", "ordered"]
        )  # fmt: skip
        if triangles and random.random() < 0.35 and kind not in ("argmax", "argmin"):
            which = triangles[0]
            extent = inner[which].extent
            outer = next(o.name for o in loops if o.extent == extent)
            bounds = random.choice(
                [f"0, {outer} + 1", f"{outer}, {extent}", f"{outer} + 1, {extent}", f"0, {outer}"]
            )
            parts = [_clauses([loop]) for loop in inner]
            parts[which] = f" for {inner[which].name} in tl.range({bounds})"
            clauses = "".join(parts)
        count = 1
        for loop in inner:
            count *= longest(loop.extent)
        load = self.leaf([*loops, *inner])
        depth = random.choice([0, 0, 1, 1, 2])
        if kind in ("any", "all"):
            element = expression(random, load, "bool", depth)
            return f"tl.{kind}({element.text}{clauses})", Value("", "bool")
        dtype = random.choice(["f32", "f32", *NUMBERS])
        if kind == "ordered":
            dtype = random.choice(["f32", "f64", "i32", "u8"])
            element = exact(random, load, dtype, depth)
            value = _reduced("sum", element, count)
            whole = Value("", dtype, value.bound, 0.0, 0.0 if value.error else value.step)
            return f"tl.sum(({element.text}{clauses}), ordered=True)", whole
        if kind in ("argmax", "argmin"):
            element = exact(random, load, dtype, depth)
            return f"tl.{kind}({element.text}{clauses})", Value("", "i64", float(count))
        element = expression(random, load, dtype, depth)
        if random.random() < 0.3 and kind == "sum":
            other = load(dtype)
            bound = element.bound * other.bound
            if bound < 1e4 or dtype in INTEGERS:
                error = element.error * other.bound + other.error * element.bound
                text = f"{element.text} * {other.text}"
                element = rounded(text, dtype, bound, error, element.step * other.step)
        if dtype in HALVES and kind == "sum" and element.bound > 4:
            element = clipped(element, 4)  # so that f16 does not overflow on the way
        if kind == "custom":
            return self._custom(element, clauses, count)
        if kind == "prod" and dtype in FLOATS:
            text = f"tl.clip({element.text}, -1, 1)"
            element = Value(text, dtype, 1.0, element.error, element.step)
        text = f"tl.{kind}({element.text}{clauses})"
        return text, _reduced(kind, element, count)

    def _custom(self, element: Value, clauses: str, count: int) -> tuple[str, Value]:
        dtype = element.dtype
        self.orders_matter = True
        if dtype in FLOATS:
            name, identity = self.random.choice([("maximum", "-tl.inf"), ("minimum", "tl.inf")])
            text = f"tl.reduce(tl.{name}, {identity}, ({element.text}{clauses}))"
            return text, _reduced("max", element, count)
        form, identity, ordered = self.random.choice(
            [
                ("a ^ b", "0", ""),
                ("a + b", "0", ""),
                ("a | b", "0", ""),
                ("a * 3 + b", "1", ", ordered=True"),
            ]
        )
        text = f"tl.reduce(lambda a, b: {form}, {identity}, ({element.text}{clauses}){ordered})"
        return text, Value("", dtype, LARGEST[dtype])

    def _scan(self, name: str) -> None:
        random = self.random
        outer = self._loops((0, 1, 1, 2), "ij")
        along = Loop("k", self._extent())
        dtype = random.choice(NUMBERS)
        element = expression(random, self.leaf([*outer, along]), dtype, random.choice([0, 1, 2]))
        if dtype in HALVES and element.bound > 4:
            element = clipped(element, 4)
        lowest = "-tl.inf" if dtype in FLOATS else "0" if dtype in UNSIGNED else "-100"
        combine, identity, kind = random.choice(
            [("lambda a, b: a + b", "0", "sum"), ("tl.maximum", lowest, "max")]
        )
        keywords = random.choice(["", "", ", exclusive=True", ", reverse=True"])
        if "exclusive" in keywords and kind == "max":
            keywords = ""
        value = _reduced(kind, element, longest(along.extent))
        if dtype in INTEGERS and kind == "max":
            value = Value("", dtype, max(value.bound, 1000.0))
        body = f"tl.scan({combine}, {identity}, ({element.text}{_clauses([along])}){keywords})"
        if outer:
            body = f"tl.tensor({body}{_clauses(outer)})"
        self.lines.append(f"{name} = {body}")
        shape = tuple(loop.extent for loop in [*outer, along])
        self.tensors.append(Held(name, shape, value))

    def _pad(self, name: str) -> None:
        random = self.random
        fitting = [h for h in self.tensors if h.shape and all(len(e) == 1 for e in h.shape)]
        if not fitting:
            self._map(name)
            return
        held = random.choice(fitting)
        axis = random.randrange(len(held.shape))
        amounts = random.choice([(1, 1), (0, 2), (2, 0)])
        extent = held.shape[axis]
        padded = str(int(extent) + 2) if extent.isdigit() else f"{extent} + 2"
        value = "False" if held.element.dtype == "bool" else random.choice(["0", "1"])
        self.lines.append(f"{name} = tl.pad({held.name}, {{{axis}: {amounts}}}, {value})")
        shape = (*held.shape[:axis], padded, *held.shape[axis + 1 :])
        self.tensors.append(Held(name, shape, held.element))

    def _order(self, name: str) -> None:
        """A sort; positions only of exact elements, lest rounding decide which comes first."""
        random = self.random
        fitting = [held for held in self.tensors if held.shape]
        if not fitting:
            self._map(name)
            return
        held = random.choice(fitting[-3:])
        axis = random.randrange(len(held.shape))
        kind = random.choice(["sort", "argsort", "topk"] if held.element.is_exact else ["sort"])
        way = random.choice(["True", "False"])
        places = Value("", "i64", float(longest(held.shape[axis])))
        if kind == "topk":
            other = f"t{int(name[1:]) + 1}"
            call = f"tl.topk({held.name}, 2, axis={axis}, largest={way})"
            self.lines.append(f"{name}, {other} = {call}")
            shape = (*held.shape[:axis], "2", *held.shape[axis + 1 :])
            self.tensors.append(Held(name, shape, held.element))
            self.tensors.append(Held(other, shape, places))
            return
        self.lines.append(f"{name} = tl.{kind}({held.name}, axis={axis}, descending={way})")
        element = held.element if kind == "sort" else places
        self.tensors.append(Held(name, held.shape, element))

    def _scatter(self, name: str) -> None:
        random = self.random
        fitting = [held for held in self.tensors if 0 < len(held.shape) < 3]
        if not fitting:
            self._map(name)
            return
        base = random.choice(fitting[-3:])
        loops = self._loops((1, 1, 2), "kr")
        gather = self._gather(loops)
        index = [gather(extent) or "0" for extent in base.shape]
        dtype = base.element.dtype
        value = expression(random, self.leaf(loops), dtype, 1)
        combine = random.choice(
            ["None", "None", "'min'", "'max'", *([] if dtype == "bool" else ["'add'", "'add'"])]
            + ["'mul'"] * (dtype in INTEGERS)
        )
        count = 1
        for loop in loops:
            count *= longest(loop.extent)
        element = either("", base.element, value)
        if combine == "'add'":
            if dtype in HALVES:
                value = clipped(value, 1)
            element = add(base.element, _reduced("sum", value, count))
            if element.error:
                error = element.error + count * 4 * UNIT[dtype] * element.bound
                element = Value("", dtype, element.bound, error, 0.0)
        if combine == "'mul'":
            element = Value("", dtype, LARGEST[dtype])
        place = index[0] if len(index) == 1 else f"({', '.join(index)})"
        body = f"(({place}, {value.text}){_clauses(loops)})"
        self.lines.append(f"{name} = tl.scatter({base.name}, {body}, {combine})")
        self.tensors.append(Held(name, base.shape, element))

    def _tuple(self, name: str) -> None:
        """A reduction whose state is a tuple: one stage, several tensors."""
        random = self.random
        loops = self._loops((0, 1, 1, 2), "ij")
        inner = self._loops((1, 1, 2), "kr")
        count = 1
        for loop in inner:
            count *= longest(loop.extent)
        load = self.leaf([*loops, *inner])
        other = f"t{int(name[1:]) + 1}"
        names, values, body = [name, other], [], ""
        clauses = _clauses(inner)
        self.orders_matter = True
        match random.choice(["extremes", "moments", "softmax", "welford"]):
            case "extremes":
                x = expression(random, load, random.choice(FLOATS), 1)
                body = (
                    "lambda a, b: (tl.minimum(a[0], b[0]), tl.maximum(a[1], b[1])), "
                    f"(tl.inf, -tl.inf), (({x.text}, {x.text}){clauses})"
                )
                values = [_reduced("max", x, count)] * 2
            case "moments":
                x = expression(random, load, random.choice(INTEGERS), 1)
                body = (
                    "lambda a, b: (a[0] + b[0], a[1] + b[1]), "
                    f"(0, 0), (({x.text}, {x.text} * {x.text}){clauses})"
                )
                values = [Value("", x.dtype, LARGEST[x.dtype])] * 2
            case "softmax":
                x = _tame(expression(random, load, random.choice(["f32", "f64"]), 1))
                body = (
                    "lambda a, b: (tl.maximum(a[0], b[0]), "
                    "a[1] * tl.exp(tl.minimum(a[0] - tl.maximum(a[0], b[0]), 0)) + "
                    "b[1] * tl.exp(tl.minimum(b[0] - tl.maximum(a[0], b[0]), 0))), "
                    f"(-1e30, 0.0), (({x.text}, tl.cast(1, tl.{x.dtype})){clauses})"
                )
                error = count * (x.error + 16 * UNIT[x.dtype] * count)
                values = [
                    Value("", x.dtype, 1e30, x.error, x.step),
                    Value("", x.dtype, float(count), error * 4, 0.0),
                ]
            case _:
                x = _tame(expression(random, load, random.choice(["f32", "f64"]), 1))
                one, zero = (f"tl.cast({n}, tl.{x.dtype})" for n in (1, 0))
                names.append(f"t{int(name[1:]) + 2}")
                body = f"welford, (0.0, 0.0, 0.0), (({x.text}, {zero}, {one}){clauses})"
                error = count * (x.error + 32 * UNIT[x.dtype] * x.bound)
                square = 4 * count * x.bound * (error + 32 * UNIT[x.dtype] * x.bound)
                values = [
                    Value("", x.dtype, x.bound, error, 0.0),
                    Value("", x.dtype, count * x.bound * x.bound, square, 0.0),
                    Value("", x.dtype, float(count)),
                ]
        body = f"tl.reduce({body})"
        if loops:
            body = f"tl.tensor({body}{_clauses(loops)})"
        self.lines.append(f"{', '.join(names)} = {body}")
        shape = tuple(loop.extent for loop in loops)
        for part, value in zip(names, values, strict=True):
            self.tensors.append(Held(part, shape, value))

    # --- the whole -----------------------------------------------------------------------------

    def finish(self) -> Sample:
        random = self.random
        stages = [held for held in self.tensors if held not in self.inputs]
        last = self.lines[-1].partition(" = ")[0].split(", ")
        outputs = [held for held in stages if held.name in last]
        if len(stages) > len(outputs) and random.random() < 0.2:
            outputs.append(random.choice([h for h in stages if h not in outputs]))
        parameters = [_annotated(held) for held in (*self.inputs, *self.scalars)]
        text = WELFORD if any("welford" in line for line in self.lines) else ""
        text += "\n".join(
            [
                "@tl.compute",
                f"def op({', '.join(parameters)}):",
                *[f"    {line}" for line in self.lines],
                f"    return {', '.join(held.name for held in outputs)}",
                "",
            ]
        )
        return Sample(
            text,
            make(text),
            tuple(self.inputs),
            tuple(self.scalars),
            tuple(outputs),
            tuple(self.tensors),
            self.dims,
            self.orders_matter,
        )


WELFORD = """def welford(a, b):
    count = a[2] + b[2]
    safe = tl.maximum(count, 1)
    delta = b[0] - a[0]
    mean = a[0] + delta * b[2] / safe
    return mean, a[1] + b[1] + delta * delta * a[2] * b[2] / safe, count


"""


def draw_operator(random: Random) -> Sample:
    maker = Maker(random)
    for _ in range(random.choice([1, 2, 2, 3, 3, 4])):
        maker.add_stage()
    return maker.finish()


def make(text: str, name: str = "<operator>") -> tl.Operator:
    """Return the operator that ``text`` defines; errors show its lines."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    M, N, K = tl.dims("M N K")
    namespace: dict[str, Any] = {"tl": tl, "M": M, "N": N, "K": K}
    exec(compile(text, name, "exec"), namespace)
    return namespace["op"]


def _annotated(held: Held) -> str:
    shape = f"[{', '.join(held.shape)}]" if held.shape else ""
    return f"{held.name}: tl.{held.element.dtype}{shape}"


def _clauses(loops: list[Loop]) -> str:
    return "".join(
        f" for {loop.name} in "
        + (f"tl.range({loop.extent})" if loop.extent.isdigit() else loop.extent)
        for loop in loops
    )


def _tame(x: Value) -> Value:
    text = f"tl.clip({x.text}, -4, 4)"
    return Value(text, x.dtype, min(x.bound, 4.0), x.error, x.step)


def _reduced(kind: str, element: Value, count: int) -> Value:
    e = element
    if kind == "sum":
        result = rounded("", e.dtype, e.bound * count, e.error * count, e.step)
        if result.error:
            error = count * (e.error + count * 2 * UNIT[e.dtype] * e.bound)
            return Value("", e.dtype, e.bound * count, error, 0.0)
        return result
    if kind == "prod":
        if e.dtype in INTEGERS:
            return Value("", e.dtype, LARGEST[e.dtype])
        if e.is_exact and e.step == 1.0:
            return Value("", e.dtype, 1.0)
        return Value("", e.dtype, 1.0, count * (e.error + 4 * UNIT[e.dtype]), 0.0)
    bound = LARGEST[e.dtype] if e.dtype in INTEGERS else e.bound
    return Value("", e.dtype, bound, e.error, e.step)
