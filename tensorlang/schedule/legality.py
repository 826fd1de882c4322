"""Whether a loop's iterations may run in any order: by structure where that decides, else by isl.

Structure decides when, for every statement below the loop that writes storage shared between
iterations, distinct iterations write distinct elements, and no statement below reads what another
one below writes there. The rest is asked of ``poly``, with its counterexample in the refusal.
"""

from __future__ import annotations

from tensorlang.ir.affine import Var, affine, depends_on, linear_coefficient
from tensorlang.ir.expr import loads_of
from tensorlang.ir.interval import bounds
from tensorlang.ir.program import Alloc, For, Program
from tensorlang.ir.walk import iterate, loop_variables
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.resolve import shortest_path
from tensorlang.schedule.tree import Loop, Place, find_loop, places_of


def is_plainly_independent(loop: Loop) -> bool:
    """Tell whether structure alone shows that the iterations of ``loop`` do not interfere."""
    if not isinstance(loop, For):
        return False
    places = list(places_of(loop.body))
    shared_writes = set[int]()
    for place in places:
        compute = place.compute
        for own in compute.stage.tensors:
            written = compute.redirect(own)
            if place.is_private(written):
                continue
            shared_writes.add(id(written))
            if not _writes_distinct(loop.variable, place):
                return False
    for place in places:
        compute = place.compute
        for load in loads_of(*compute.stage.values):
            read = compute.redirect(load.tensor)
            if not place.is_private(read) and id(read) in shared_writes:
                return False
    return True


def _writes_distinct(variable: Var, place: Place) -> bool:
    """Tell whether two iterations never write one element, all loops further out being equal."""
    if reduction_depends_on(place, variable):
        return False
    extents = place.extents()
    for index in place.data_binding:
        stride = linear_coefficient(index, variable)
        if not stride:
            continue
        interval = bounds(index - affine(variable) * stride, extents)
        if interval is None:
            continue
        width = interval[1] - interval[0]
        if width.is_constant and width.constant < abs(stride):
            return True
    return False


def reduction_depends_on(place: Place, variable: Var) -> bool:
    """Tell whether a loop moves through the reduction axes of a statement."""
    compute = place.compute
    if compute.part == "init":
        return False
    forms = compute.binding[len(compute.stage.axes) :]
    return any(depends_on(form, {variable}) for form in forms)


def carries_reduction(loop: Loop) -> bool:
    """Tell whether ``loop`` moves through the reduction axes of a statement below it."""
    return any(
        reduction_depends_on(place, variable)
        for place in places_of(loop.body)
        for variable in loop_variables(loop)
    )


def _only_reduces(loop: Loop) -> bool:
    """Tell whether a statement below ``loop`` meets the same element in all iterations."""
    variables = set(loop_variables(loop))
    return any(
        reduction_depends_on(place, variable)
        and not any(depends_on(form, variables) for form in place.data_binding)
        for place in places_of(loop.body)
        for variable in variables
    )


def require_independent(program: Program, handle: Var, what: str, advice: str) -> None:
    """Refuse unless the iterations of a loop may run in any order, or at once."""
    loop = find_loop(program.body, handle)
    assert loop is not None
    if isinstance(loop, For) and loop.extent.is_constant and loop.extent.constant <= 1:
        return
    if is_plainly_independent(loop) and not _has_folds(program):
        return
    if _only_reduces(loop):
        path = shortest_path(program, handle)
        raise Refusal(
            f"{what} {handle} would let two iterations combine into one element at once",
            f'{handle} runs through a reduction: s.rfactor("{path}") gives each iteration its '
            "own partial result, which may then run in parallel or as vector lanes",
            loops=(handle,),
            counterexample=_reduction_witness(loop, handle),
        )
    from tensorlang.poly.legality import find_conflict

    conflict = find_conflict(_placed(program), handle)
    if conflict is not None:
        raise Refusal(
            f"iterations of {handle} are not independent",
            advice,
            loops=(handle,),
            counterexample=str(conflict),
        )


def _has_folds(program: Program) -> bool:
    """Tell whether elements share places, which indices alone do not show."""
    return any(
        isinstance(stmt, Alloc) and stmt.layout is not None and stmt.layout.folded
        for stmt in iterate(program.body)
    )


def _reduction_witness(loop: Loop, handle: Var) -> str:
    for place in places_of(loop.body):
        if any(reduction_depends_on(place, variable) for variable in loop_variables(loop)):
            name = place.compute.redirect(place.compute.stage.tensor).name
            return f"{handle} = 0 and {handle} = 1 both read and write the same element of {name}"
    return ""


def require_proof(program: Program, claim: str, advice: str, *loops: Var) -> None:
    """Refuse a step that structure did not decide unless the program it leads to can be proved."""
    from tensorlang.poly.proof import prove

    evidence = prove(_placed(program))
    if not evidence.ok:
        failure = next(item for item in evidence.claims if not item.holds)
        raise Refusal(claim, advice, loops=loops, counterexample=str(failure.counterexample))


def is_proved(program: Program) -> bool:
    """Tell whether a program provably computes its definition."""
    from tensorlang.poly.proof import prove

    return prove(_placed(program)).ok


def _placed(program: Program) -> Program:
    from tensorlang.schedule.place_inits import place_inits

    return place_inits(program)
