"""Random programs, many of them wrong: the proof must agree with a run at small sizes.

Schedules are drawn without any check of legality, then perhaps broken on purpose. What is proved
must run without a fault; what is refuted must fail at the very sizes of the counterexample.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Definition
from tensorlang.ir.program import Alloc, Compute, For, Program, Seq, Stmt
from tensorlang.ir.walk import iterate
from tensorlang.poly.proof import prove
from tensorlang.schedule.place_inits import place_inits
from tests.poly import definitions as ops
from tests.poly.scheduling import (
    cache_read,
    cache_write,
    compute_at,
    fuse,
    naive,
    reorder,
    replace_stmt,
    set_kind,
    split,
    split_fused,
)
from tests.poly.simulate import find_fault

OPERATORS: list[Callable[[], Definition]] = [
    ops.matmul,
    ops.softmax,
    ops.blur,
    ops.padded_stencil,
    ops.cumulative_sum,
    ops.argmax,
    ops.triangular,
    ops.ordered_sum,
    lambda: ops.stencil_chain(2),
    ops.row_sums_of_squares,
]


def loops_of(program: Program) -> list[For]:
    return [stmt for stmt in iterate(program.body) if isinstance(stmt, For)]


def name_and_number(program: Program, loop: For) -> tuple[str, int]:
    same = [s for s in loops_of(program) if s.variable.name == loop.variable.name]
    return loop.variable.name, same.index(loop)


def step(program: Program, random: Random) -> Program:
    """Apply one rewrite at random, right or wrong."""
    definition = program.definition
    loop = random.choice(loops_of(program))
    name, number = name_and_number(program, loop)
    match random.choice(["split", "split", "reorder", "kind", "read", "write", "at", "fuse"]):
        case "split":
            return split(program, name, random.choice([1, 2, 3, 4]), number)
        case "reorder":
            inner = loop.body
            if isinstance(inner, For) and not names_clash(program, loop, inner):
                return reorder(program, inner.variable.name, loop.variable.name)
        case "kind":
            return set_kind(program, name, random.choice(["parallel", "vectorized"]), number)
        case "read" if number == 0:
            return cache_read(program, random.choice(definition.inputs), name)
        case "write" if number == 0:
            tensor = random.choice(definition.outputs)
            return cache_write(program, tensor, name, copy_in=random.random() < 0.4)
        case "at" if number == 0 and len(definition.stages) > 1:
            return compute_at(program, definition.stages[0], name)
        case "fuse":
            inner = loop.body
            if isinstance(inner, For) and not names_clash(program, loop, inner):
                program = fuse(program, loop.variable.name, inner.variable.name)
                if random.random() < 0.5:
                    program = split_fused(program, 3, random.choice(["serial", "parallel"]))
        case _:
            pass
    return program


def names_clash(program: Program, *loops: For) -> bool:
    return any(name_and_number(program, loop)[1] != 0 for loop in loops)


def mutate(program: Program, random: Random) -> Program:
    """Break a placed program in one place, perhaps harmlessly."""
    stmt = random.choice([s for s in iterate(program.body)])
    by = random.choice([-1, 1])
    new: Stmt = stmt
    match stmt:
        case For():
            new = random.choice(
                [replace(stmt, extent=stmt.extent + by), replace(stmt, kind="parallel")]
            )
        case Seq() if stmt.stmts:
            parts = list(stmt.stmts)
            if random.random() < 0.5:
                parts.pop(random.randrange(len(parts)))
            else:
                random.shuffle(parts)
            new = Seq(tuple(parts))
        case Alloc() if stmt.shape:
            axis = random.randrange(len(stmt.shape))
            forms = list(random.choice([stmt.shape, stmt.origin]))
            changed = "shape" if tuple(forms) == stmt.shape else "origin"
            forms[axis] = forms[axis] + by
            new = replace(stmt, **{changed: tuple(forms)})
        case Compute():
            choices: list[Stmt] = [Seq(())]
            for n in range(len(stmt.guard)):
                choices.append(replace(stmt, guard=stmt.guard[:n] + stmt.guard[n + 1 :]))
                weaker = (*stmt.guard[:n], stmt.guard[n] + by, *stmt.guard[n + 1 :])
                choices.append(replace(stmt, guard=weaker))
            for n in range(len(stmt.binding)):
                binding = list(stmt.binding)
                binding[n] = random.choice([binding[n] + by, affine(0), binding[-1]])
                choices.append(replace(stmt, binding=tuple(binding)))
            new = random.choice(choices)
        case _:
            pass
    return replace_stmt(program, stmt, new) if new is not stmt else program


def draw_program(random: Random) -> Program | None:
    program = naive(random.choice(OPERATORS)())
    try:
        for _ in range(random.randrange(5)):
            program = step(program, random)
        program = place_inits(program)
    except (AssertionError, ValueError, IndexError, TypeError):
        return None  # a step that this little scheduler cannot do
    for _ in range(random.choice([0, 1, 1, 2])):
        program = mutate(program, random)
    return program


def check(random: Random) -> str:
    program = draw_program(random)
    if program is None:
        return "not drawn"
    evidence = prove(program)
    sizes = program.definition.sizes
    if evidence.ok:
        for values in itertools.product((0, 1, 2, 3, 5), repeat=len(sizes)):
            fault = find_fault(program, dict(zip(sizes, values, strict=True)))
            assert fault is None, f"proved, but at {values}: {fault}"
        return "proved"
    found = evidence.counterexample
    assert found is not None
    if not found.refuted:
        return "not proved"
    if found.claim == "structure":
        return "malformed"
    if max(found.sizes.values(), default=0) > 12:
        return "refuted at large sizes"
    values = {size: found.sizes[size.name] for size in sizes}
    if found.claim == "bounds" or not is_harmless(found.reason):
        assert find_fault(program, values) is not None, f"refuted, but runs:\n{evidence}"
    return "refuted"


def is_harmless(reason: str) -> bool:
    """Whether a fault of form may compute the right values all the same."""
    return "two inits" in reason or "outside its shape" in reason


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_proof_agrees_with_running(seed: int) -> None:
    check(Random(seed))


def test_random_programs_are_of_all_kinds() -> None:
    verdicts = [check(Random(seed)) for seed in range(80)]
    assert verdicts.count("proved") >= 15
    assert verdicts.count("refuted") >= 15
