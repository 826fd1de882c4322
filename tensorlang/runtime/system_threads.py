"""Parallel loops without an OpenMP runtime: threads of the operating system, made for each call.

Input:  ``make_system_threads().entry``
Output: the address of ``void GOMP_parallel(fn, data, threads, flags)``

The function starts ``threads - 1`` threads on ``fn(data)``, runs it too, and waits. It is machine
code: it needs no lock of Python's, cannot be interrupted half-way, and keeps nothing that a
``fork`` could break. Making a thread costs tens of microseconds, so that only work of 100 is
divided. The tasks of a parallel loop are taken from a counter: where no thread can be made, one
call of ``fn`` does them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

_MOST = 256
"""Threads that one call starts at most."""

_ENTRIES = f"""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @llvm.smin.i32(i32, i32)

define void @alone(ptr %function, ptr %data, i32 %threads, i32 %flags) {{
  call void %function(ptr %data)
  ret void
}}

define internal ptr @work(ptr %task) {{
  %function = load ptr, ptr %task
  %place = getelementptr ptr, ptr %task, i64 1
  %data = load ptr, ptr %place
  call void %function(ptr %data)
  ret ptr null
}}

define void @parallel(ptr %function, ptr %data, i32 %threads, i32 %flags) {{
entry:
  %handles = alloca [{_MOST} x i64]
  %task = alloca [2 x ptr]
  store ptr %function, ptr %task
  %place = getelementptr ptr, ptr %task, i64 1
  store ptr %data, ptr %place
  %others = sub i32 %threads, 1
  %wanted = call i32 @llvm.smin.i32(i32 %others, i32 {_MOST})
  br label %more
more:
  %made = phi i32 [ 0, %entry ], [ %next, %started ]
  %enough = icmp sge i32 %made, %wanted
  br i1 %enough, label %run, label %start
start:
  %handle = getelementptr i64, ptr %handles, i32 %made
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @work, ptr %task)
  %well = icmp eq i32 %failed, 0
  br i1 %well, label %started, label %run
started:
  %next = add i32 %made, 1
  br label %more
run:
  call void %function(ptr %data)
  br label %wait
wait:
  %waited = phi i32 [ 0, %run ], [ %following, %join ]
  %all = icmp sge i32 %waited, %made
  br i1 %all, label %done, label %join
join:
  %ended = getelementptr i64, ptr %handles, i32 %waited
  %thread = load i64, ptr %ended
  %code = call i32 @pthread_join(i64 %thread, ptr null)
  %following = add i32 %waited, 1
  br label %wait
done:
  ret void
}}
"""


@dataclass(frozen=True, slots=True)
class SystemThreads:
    """Machine code that starts threads; ``entry`` is its address while this object lives."""

    entry: int
    engine: Any


def make_system_threads() -> SystemThreads:
    """Return ``GOMP_parallel`` over threads of the operating system."""
    engine = _engine()
    return SystemThreads(engine.get_function_address("parallel"), engine)


def alone() -> int:
    """Return the address of a ``GOMP_parallel`` that calls the function once, on this thread."""
    return int(_engine().get_function_address("alone"))


@cache
def _engine() -> Any:
    from tensorlang.targets.llvm import llvm_binding

    llvm = llvm_binding()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_ENTRIES), machine)
    engine.finalize_object()
    return engine
