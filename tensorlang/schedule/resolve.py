"""From what a user writes (handles, paths, names) to loops, stages and tensors of a program.

Input:  ``"e/j"``      Output: the loop j of the stage softmax/e, if there is exactly one
"""

from __future__ import annotations

from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.program import Alloc, Program
from tensorlang.ir.walk import iterate
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import handle_of, label_of, loops_of, places_of


def loop_paths(program: Program) -> dict[str, Var]:
    """Return every loop by its full path, ``stage/name``; equal ones are numbered: ``C/i#2``."""
    by_path: dict[str, list[Var]] = {}
    for loop in loops_of(program.body):
        handle = handle_of(loop)
        by_path.setdefault(f"{loop.owner}/{handle.name}", []).append(handle)
    found: dict[str, Var] = {}
    for path, handles in by_path.items():
        for number, handle in enumerate(handles, 1):
            found[path if len(handles) == 1 else f"{path}#{number}"] = handle
    return found


def _is_suffix(path: str, full: str) -> bool:
    """Tell whether ``path`` names ``full``, or leaves the number of a numbered path open."""
    unnumbered, _, _ = full.partition("#")
    return any(name == path or name.endswith(f"/{path}") for name in (full, unnumbered))


def resolve_path(program: Program, path: str) -> Var:
    """Return the loop that a path names, read from the right; refuse none and several."""
    paths = loop_paths(program)
    matches = [full for full in paths if _is_suffix(path, full)]
    if len(matches) > 1 and path in matches:
        matches = [path]
    if len(matches) == 1:
        return paths[matches[0]]
    if not matches:
        raise Refusal(f"there is no loop {path!r}", f"one of {', '.join(paths) or 'no loops'}")
    raise Refusal(
        f"{path!r} names {len(matches)} loops", f"one of {', '.join(repr(m) for m in matches)}"
    )


def shortest_path(program: Program, handle: Var) -> str:
    """Return the shortest path that names a loop uniquely."""
    paths = loop_paths(program)
    full = next(path for path, variable in paths.items() if variable is handle)
    parts = full.split("/")
    for count in range(1, len(parts) + 1):
        candidate = "/".join(parts[-count:])
        if sum(_is_suffix(candidate, other) for other in paths) == 1:
            return candidate
    return full


def stage_labels(program: Program) -> dict[str, Stage]:
    """Return the stages by name: those of the program, copies, and copies back (``C.write``)."""
    found: dict[str, Stage] = {}
    for stage in program.stages:
        label = label_of(stage)
        number = 1
        unique = label
        while unique in found:
            unique, number = f"{label}_{number}", number + 1
        found[unique] = stage
    return found


def resolve_stage(program: Program, name: str) -> Stage:
    """Return the stage of a name: a label, a part of one from the right, or one of its tensors."""
    labels = stage_labels(program)
    if name in labels:
        return labels[name]
    matches = [stage for label, stage in labels.items() if _is_suffix(name, label)]
    if not matches:
        matches = [
            stage
            for stage in program.stages
            if stage.copies is None and any(_is_suffix(name, t.name) for t in stage.tensors)
        ]
    if not matches and name == program.definition.name:
        matches = output_stages(program)
    if len(matches) == 1:
        return matches[0]
    if not matches and any(name == tensor.name for tensor in program.definition.inputs):
        raise Refusal(
            f"{name} is a parameter, which no stage makes",
            f's.cache_read("{name}", at=...) for a copy of it, or one of {", ".join(labels)}',
        )
    if not matches:
        raise Refusal(f"there is no stage {name!r}", f"one of {', '.join(labels)}")
    names = ", ".join(label_of(stage) for stage in matches)
    raise Refusal(f"{name!r} names several stages", f"one of {names}")


def output_stages(program: Program) -> list[Stage]:
    """Return the stages that make the outputs, in order, copies left out."""
    return [
        stage
        for stage in program.stages
        if stage.copies is None
        and any(tensor in program.definition.outputs for tensor in stage.tensors)
    ]


def resolve_tensor(program: Program, name: str) -> Tensor:
    """Return the tensor of a name: an input, a stage's, or a copy."""
    tensors = {t.name: t for t in program.definition.inputs}
    for stage in program.stages:
        for tensor in stage.tensors:
            tensors.setdefault(tensor.name, tensor)
    for stmt in iterate(program.body):  # what cache_write computes into is no stage's own tensor
        if isinstance(stmt, Alloc):
            tensors.setdefault(stmt.tensor.name, stmt.tensor)
    if name in tensors:
        return tensors[name]
    matches = [tensor for known, tensor in tensors.items() if _is_suffix(name, known)]
    if not matches and name == program.definition.name and len(program.definition.outputs) == 1:
        return program.definition.outputs[0]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise Refusal(f"there is no tensor {name!r}", f"one of {', '.join(tensors)}")
    raise Refusal(f"{name!r} names several tensors", f"one of {', '.join(t.name for t in matches)}")


def own_loops(program: Program, stage: Stage, part: str | None = None) -> tuple[Var, ...]:
    """Return the loops of a stage, outermost first: those made for it, wherever they stand now."""
    owner = f"{label_of(stage)}.init" if part == "init" else label_of(stage)
    found: dict[Var, None] = {}
    for place in places_of(program.body):
        if place.compute.stage is not stage or (part == "init") != (place.compute.part == "init"):
            continue
        for loop in place.loops:
            if loop.owner == owner:
                found[handle_of(loop)] = None
    return tuple(found)
