"""The C function behind a fast call, as LLVM IR: one for all operators, compiled once.

Input:  the arguments of a call, and the *plans* that the callee keeps of earlier calls
Output: the result of the first plan that fits the arguments; without one, that of ``__call__``

A plan fits if the arguments are what it was made for, word by word: the same keywords, exact NumPy
arrays of the same element type, shape and strides, aligned, an ``out`` that is writable and apart
from the inputs; any other argument the very same (immutable) object. So nothing needs to be
computed: sizes, conditions and work were settled when the plan was made. What is left is to
allocate the results, to put the data pointers where the kernels expect them, and to call these.

Whatever is unusual, errors too, is left to ``__call__``, which runs the call anew and explains it.
The structs are those of ``plans``; NumPy's array struct is public and was probed before use.
"""

DISPATCH = "tensorlang_dispatch"

IMPORTS: tuple[str, ...] = ("ndarray_type", "new_array", "gate")
"""Symbols that the linker must be given; the others are Python's own."""

CODE = """
%Object = type { i64, ptr }
%Tuple = type { i64, ptr, i64, [0 x ptr] }
%Array = type { i64, ptr, ptr, i32, ptr, ptr, ptr, ptr, i32 }
%Dtype = type { %Object, ptr, i8, i8, i8, i8, i32 }
%Gate = type { i64, i64 }
%State = type { ptr, ptr }
%Plan = type { ptr, i64, i64, i64, i64, ptr, ptr, i64, i64, ptr, i64, ptr, i64, ptr, i64 }
%Guard = type { ptr, ptr, i64, i64, i64, i64, i64, i64, ptr }
%Patch = type { i64, ptr }
%Step = type { ptr, ptr }

@ndarray_type = external global i8
@gate = external global %Gate

declare ptr @new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

; Whether an array is what a guard was made for; notes where its elements begin and end.
define internal i1 @fits(ptr %value, ptr %guard) {
entry:
  %type.at = getelementptr %Object, ptr %value, i32 0, i32 1
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, @ndarray_type
  br i1 %is.array, label %array, label %no
array:
  %dtype.at = getelementptr %Array, ptr %value, i32 0, i32 7
  %dtype = load ptr, ptr %dtype.at
  %wanted.dtype.at = getelementptr %Guard, ptr %guard, i32 0, i32 1
  %wanted.dtype = load ptr, ptr %wanted.dtype.at
  %number.at = getelementptr %Dtype, ptr %dtype, i32 0, i32 6
  %number = load i32, ptr %number.at
  %wanted.number.at = getelementptr %Dtype, ptr %wanted.dtype, i32 0, i32 6
  %wanted.number = load i32, ptr %wanted.number.at
  %order.at = getelementptr %Dtype, ptr %dtype, i32 0, i32 4
  %order = load i8, ptr %order.at
  %wanted.order.at = getelementptr %Dtype, ptr %wanted.dtype, i32 0, i32 4
  %wanted.order = load i8, ptr %wanted.order.at
  %same.number = icmp eq i32 %number, %wanted.number
  %same.order = icmp eq i8 %order, %wanted.order
  %same.dtype = and i1 %same.number, %same.order
  %rank.at = getelementptr %Array, ptr %value, i32 0, i32 3
  %rank.32 = load i32, ptr %rank.at
  %rank = zext i32 %rank.32 to i64
  %wanted.rank.at = getelementptr %Guard, ptr %guard, i32 0, i32 2
  %wanted.rank = load i64, ptr %wanted.rank.at
  %same.rank = icmp eq i64 %rank, %wanted.rank
  %data.at = getelementptr %Array, ptr %value, i32 0, i32 2
  %data = load ptr, ptr %data.at
  %address = ptrtoint ptr %data to i64
  %mask.at = getelementptr %Guard, ptr %guard, i32 0, i32 3
  %mask = load i64, ptr %mask.at
  %odd = and i64 %address, %mask
  %is.aligned = icmp eq i64 %odd, 0
  %same.kind = and i1 %same.dtype, %same.rank
  %same = and i1 %same.kind, %is.aligned
  br i1 %same, label %shape, label %no
shape:
  %dims.at = getelementptr %Array, ptr %value, i32 0, i32 4
  %dims = load ptr, ptr %dims.at
  %strides.at = getelementptr %Array, ptr %value, i32 0, i32 5
  %strides = load ptr, ptr %strides.at
  %wanted.dims.at = getelementptr %Guard, ptr %guard, i32 0, i32 8
  %wanted.dims = load ptr, ptr %wanted.dims.at
  %wanted.strides = getelementptr i64, ptr %wanted.dims, i64 %rank
  br label %axes
axes:
  %axis = phi i64 [ 0, %shape ], [ %next, %axis.body ]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %axis.body, label %extent
axis.body:
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %wanted.dim.at = getelementptr i64, ptr %wanted.dims, i64 %axis
  %wanted.dim = load i64, ptr %wanted.dim.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %wanted.stride.at = getelementptr i64, ptr %wanted.strides, i64 %axis
  %wanted.stride = load i64, ptr %wanted.stride.at
  %same.dim = icmp eq i64 %dim, %wanted.dim
  %same.stride = icmp eq i64 %stride, %wanted.stride
  %same.axis = and i1 %same.dim, %same.stride
  %next = add i64 %axis, 1
  br i1 %same.axis, label %axes, label %no
extent:
  %low.at = getelementptr %Guard, ptr %guard, i32 0, i32 4
  %low = load i64, ptr %low.at
  %begin = add i64 %address, %low
  %begin.at = getelementptr %Guard, ptr %guard, i32 0, i32 6
  store i64 %begin, ptr %begin.at
  %high.at = getelementptr %Guard, ptr %guard, i32 0, i32 5
  %high = load i64, ptr %high.at
  %end = add i64 %address, %high
  %end.at = getelementptr %Guard, ptr %guard, i32 0, i32 7
  store i64 %end, ptr %end.at
  ret i1 1
no:
  ret i1 0
}

; Whether the argument that is written to may be: writable, and apart from all the others.
define internal i1 @writable(ptr %value, ptr %guards, i64 %count, i64 %out) {
entry:
  %flags.at = getelementptr %Array, ptr %value, i32 0, i32 8
  %flags = load i32, ptr %flags.at
  %writeable = and i32 %flags, 1024
  %is.writeable = icmp ne i32 %writeable, 0
  br i1 %is.writeable, label %begin, label %no
begin:
  %own.begin.at = getelementptr %Guard, ptr %guards, i64 %out, i32 6
  %own.begin = load i64, ptr %own.begin.at
  %own.end.at = getelementptr %Guard, ptr %guards, i64 %out, i32 7
  %own.end = load i64, ptr %own.end.at
  br label %others
others:
  %other = phi i64 [ 0, %begin ], [ %next, %compare ], [ %next, %array ]
  %more = icmp ult i64 %other, %count
  br i1 %more, label %compare, label %yes
compare:
  %next = add i64 %other, 1
  %dtype.at = getelementptr %Guard, ptr %guards, i64 %other, i32 1
  %dtype = load ptr, ptr %dtype.at
  %is.array = icmp ne ptr %dtype, null
  %is.other = icmp ne i64 %other, %out
  %matters = and i1 %is.array, %is.other
  br i1 %matters, label %array, label %others
array:
  %begin.at = getelementptr %Guard, ptr %guards, i64 %other, i32 6
  %other.begin = load i64, ptr %begin.at
  %end.at = getelementptr %Guard, ptr %guards, i64 %other, i32 7
  %other.end = load i64, ptr %end.at
  %starts.before = icmp slt i64 %own.begin, %other.end
  %ends.after = icmp slt i64 %other.begin, %own.end
  %overlaps = and i1 %starts.before, %ends.after
  br i1 %overlaps, label %no, label %others
yes:
  ret i1 1
no:
  ret i1 0
}

; Whether a plan was made for these keywords and arguments.
define internal i1 @matches(ptr %plan, ptr %args, i64 %positional, ptr %names, i64 %named) {
entry:
  %generation.at = getelementptr %Plan, ptr %plan, i32 0, i32 1
  %generation = load i64, ptr %generation.at
  %current = load i64, ptr @gate
  %is.current = icmp eq i64 %generation, %current
  %busy.at = getelementptr %Plan, ptr %plan, i32 0, i32 2
  %busy = load i64, ptr %busy.at
  %is.idle = icmp eq i64 %busy, 0
  %positional.at = getelementptr %Plan, ptr %plan, i32 0, i32 3
  %wanted.positional = load i64, ptr %positional.at
  %same.positional = icmp eq i64 %positional, %wanted.positional
  %named.at = getelementptr %Plan, ptr %plan, i32 0, i32 4
  %wanted.named = load i64, ptr %named.at
  %same.named = icmp eq i64 %named, %wanted.named
  %usable = and i1 %is.current, %is.idle
  %same.count = and i1 %same.positional, %same.named
  %possible = and i1 %usable, %same.count
  br i1 %possible, label %keywords, label %no
keywords:
  %wanted.names.at = getelementptr %Plan, ptr %plan, i32 0, i32 5
  %wanted.names = load ptr, ptr %wanted.names.at
  %guards.at = getelementptr %Plan, ptr %plan, i32 0, i32 6
  %guards = load ptr, ptr %guards.at
  %count = add i64 %positional, %named
  br label %name
name:
  %n = phi i64 [ 0, %keywords ], [ %n.next, %name.body ]
  %more.names = icmp ult i64 %n, %named
  br i1 %more.names, label %name.body, label %argument
name.body:
  %name.at = getelementptr %Tuple, ptr %names, i32 0, i32 3, i64 %n
  %found.name = load ptr, ptr %name.at
  %wanted.name.at = getelementptr ptr, ptr %wanted.names, i64 %n
  %wanted.name = load ptr, ptr %wanted.name.at
  %same.name = icmp eq ptr %found.name, %wanted.name
  %n.next = add i64 %n, 1
  br i1 %same.name, label %name, label %no
argument:
  %k = phi i64 [ 0, %name ], [ %k.next, %array ], [ %k.next, %object ]
  %more.arguments = icmp ult i64 %k, %count
  br i1 %more.arguments, label %argument.body, label %out
argument.body:
  %k.next = add i64 %k, 1
  %value.at = getelementptr ptr, ptr %args, i64 %k
  %value = load ptr, ptr %value.at
  %guard = getelementptr %Guard, ptr %guards, i64 %k
  %object.at = getelementptr %Guard, ptr %guard, i32 0, i32 0
  %wanted.object = load ptr, ptr %object.at
  %is.array = icmp eq ptr %wanted.object, null
  br i1 %is.array, label %array, label %object
array:
  %fits = call i1 @fits(ptr %value, ptr %guard)
  br i1 %fits, label %argument, label %no
object:
  %same.object = icmp eq ptr %value, %wanted.object
  br i1 %same.object, label %argument, label %no
out:
  %out.at = getelementptr %Plan, ptr %plan, i32 0, i32 7
  %out.argument = load i64, ptr %out.at
  %has.out = icmp sge i64 %out.argument, 0
  br i1 %has.out, label %check.out, label %yes
check.out:
  %out.value.at = getelementptr ptr, ptr %args, i64 %out.argument
  %out.value = load ptr, ptr %out.value.at
  %may.write = call i1 @writable(ptr %out.value, ptr %guards, i64 %count, i64 %out.argument)
  br i1 %may.write, label %yes, label %no
yes:
  ret i1 1
no:
  ret i1 0
}

; A new result: from the guard's function, or straight from NumPy.
define internal ptr @allocate(ptr %guard) {
entry:
  %maker.at = getelementptr %Guard, ptr %guard, i32 0, i32 0
  %maker = load ptr, ptr %maker.at
  %has.maker = icmp ne ptr %maker, null
  br i1 %has.maker, label %made, label %plain
made:
  %result = call ptr @PyObject_CallNoArgs(ptr %maker)
  ret ptr %result
plain:
  %dtype.at = getelementptr %Guard, ptr %guard, i32 0, i32 1
  %dtype = load ptr, ptr %dtype.at
  call void @Py_IncRef(ptr %dtype)
  %rank.at = getelementptr %Guard, ptr %guard, i32 0, i32 2
  %rank = load i64, ptr %rank.at
  %rank.32 = trunc i64 %rank to i32
  %dims.at = getelementptr %Guard, ptr %guard, i32 0, i32 8
  %dims = load ptr, ptr %dims.at
  %new = call ptr @new_array(
      ptr @ndarray_type, ptr %dtype, i32 %rank.32, ptr %dims, ptr null, ptr null, i32 0, ptr null)
  ret ptr %new
}

define internal void @drop(ptr %results, i64 %count) {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %body, label %done
body:
  %at = getelementptr ptr, ptr %results, i64 %k
  %result = load ptr, ptr %at
  call void @Py_DecRef(ptr %result)
  %k.next = add i64 %k, 1
  br label %next
done:
  ret void
}

; Call the kernels in turn, until one fails; the first failure's code.
define internal i64 @run(ptr %plan) {
entry:
  %count.at = getelementptr %Plan, ptr %plan, i32 0, i32 12
  %count = load i64, ptr %count.at
  %steps.at = getelementptr %Plan, ptr %plan, i32 0, i32 13
  %steps = load ptr, ptr %steps.at
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %body, label %done
body:
  %entry.at = getelementptr %Step, ptr %steps, i64 %k, i32 0
  %kernel = load ptr, ptr %entry.at
  %slots.at = getelementptr %Step, ptr %steps, i64 %k, i32 1
  %slots = load ptr, ptr %slots.at
  %code = call i64 %kernel(ptr %slots)
  %k.next = add i64 %k, 1
  %is.well = icmp eq i64 %code, 0
  br i1 %is.well, label %next, label %failed
failed:
  ret i64 %code
done:
  ret i64 0
}

; Carry out a plan that fits. Null without an error set: let ``__call__`` do it, and explain.
define internal { ptr, i1 } @carry_out(ptr %plan, ptr %args, i64 %arguments) {
entry:
  %busy.at = getelementptr %Plan, ptr %plan, i32 0, i32 2
  store i64 1, ptr %busy.at
  %out.at = getelementptr %Plan, ptr %plan, i32 0, i32 7
  %out = load i64, ptr %out.at
  %outputs.at = getelementptr %Plan, ptr %plan, i32 0, i32 8
  %outputs = load i64, ptr %outputs.at
  %has.out = icmp sge i64 %out, 0
  %fresh = select i1 %has.out, i64 0, i64 %outputs
  %makers.at = getelementptr %Plan, ptr %plan, i32 0, i32 9
  %makers = load ptr, ptr %makers.at
  %results = alloca ptr, i64 %fresh
  br label %allocation
allocation:
  %r = phi i64 [ 0, %entry ], [ %r.next, %allocated ]
  %more.results = icmp ult i64 %r, %fresh
  br i1 %more.results, label %allocate, label %patch
allocate:
  %maker = getelementptr %Guard, ptr %makers, i64 %r
  %result = call ptr @allocate(ptr %maker)
  %has.result = icmp ne ptr %result, null
  br i1 %has.result, label %allocated, label %exhausted
allocated:
  %result.at = getelementptr ptr, ptr %results, i64 %r
  store ptr %result, ptr %result.at
  %r.next = add i64 %r, 1
  br label %allocation
exhausted:
  call void @drop(ptr %results, i64 %r)
  store i64 0, ptr %busy.at
  ret { ptr, i1 } { ptr null, i1 1 }
patch:
  %patches.at = getelementptr %Plan, ptr %plan, i32 0, i32 11
  %patches = load ptr, ptr %patches.at
  %patch.count.at = getelementptr %Plan, ptr %plan, i32 0, i32 10
  %patch.count = load i64, ptr %patch.count.at
  br label %patching
patching:
  %p = phi i64 [ 0, %patch ], [ %p.next, %patched ]
  %more.patches = icmp ult i64 %p, %patch.count
  br i1 %more.patches, label %patch.body, label %start
patch.body:
  %p.next = add i64 %p, 1
  %source.at = getelementptr %Patch, ptr %patches, i64 %p, i32 0
  %source = load i64, ptr %source.at
  %slot.at = getelementptr %Patch, ptr %patches, i64 %p, i32 1
  %slot = load ptr, ptr %slot.at
  %is.argument = icmp ult i64 %source, %arguments
  br i1 %is.argument, label %from.argument, label %from.result
from.argument:
  %argument.at = getelementptr ptr, ptr %args, i64 %source
  br label %patched
from.result:
  %number = sub i64 %source, %arguments
  %fresh.at = getelementptr ptr, ptr %results, i64 %number
  br label %patched
patched:
  %array.at = phi ptr [ %argument.at, %from.argument ], [ %fresh.at, %from.result ]
  %array = load ptr, ptr %array.at
  %data.at = getelementptr %Array, ptr %array, i32 0, i32 2
  %data = load ptr, ptr %data.at
  store ptr %data, ptr %slot
  br label %patching
start:
  %release.at = getelementptr %Plan, ptr %plan, i32 0, i32 14
  %release = load i64, ptr %release.at
  %releases = icmp ne i64 %release, 0
  br i1 %releases, label %alone, label %holding
alone:
  %thread = call ptr @PyEval_SaveThread()
  %code.alone = call i64 @run(ptr %plan)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
holding:
  %code.holding = call i64 @run(ptr %plan)
  br label %ran
ran:
  %code = phi i64 [ %code.alone, %alone ], [ %code.holding, %holding ]
  store i64 0, ptr %busy.at
  %is.well = icmp eq i64 %code, 0
  br i1 %is.well, label %finish, label %failed
failed:
  call void @drop(ptr %results, i64 %fresh)
  ret { ptr, i1 } { ptr null, i1 0 }
finish:
  br i1 %has.out, label %given, label %new
given:
  %given.at = getelementptr ptr, ptr %args, i64 %out
  %given.array = load ptr, ptr %given.at
  call void @Py_IncRef(ptr %given.array)
  %given.result = insertvalue { ptr, i1 } { ptr undef, i1 1 }, ptr %given.array, 0
  ret { ptr, i1 } %given.result
new:
  %is.one = icmp eq i64 %fresh, 1
  br i1 %is.one, label %one, label %several
one:
  %one.array = load ptr, ptr %results
  %one.result = insertvalue { ptr, i1 } { ptr undef, i1 1 }, ptr %one.array, 0
  ret { ptr, i1 } %one.result
several:
  %tuple = call ptr @PyTuple_New(i64 %fresh)
  %has.tuple = icmp ne ptr %tuple, null
  br i1 %has.tuple, label %fill, label %no.tuple
no.tuple:
  call void @drop(ptr %results, i64 %fresh)
  ret { ptr, i1 } { ptr null, i1 1 }
fill:
  %t = phi i64 [ 0, %several ], [ %t.next, %fill.body ]
  %more.items = icmp ult i64 %t, %fresh
  br i1 %more.items, label %fill.body, label %filled
fill.body:
  %from.at = getelementptr ptr, ptr %results, i64 %t
  %item = load ptr, ptr %from.at
  %to.at = getelementptr %Tuple, ptr %tuple, i32 0, i32 3, i64 %t
  store ptr %item, ptr %to.at
  %t.next = add i64 %t, 1
  br label %fill
filled:
  %tuple.result = insertvalue { ptr, i1 } { ptr undef, i1 1 }, ptr %tuple, 0
  ret { ptr, i1 } %tuple.result
}

; Call the Python function with ``self`` put before the arguments.
define internal ptr @slow(ptr %self, ptr %function, ptr %args, i64 %positional, ptr %names,
                          i64 %named) noinline {
entry:
  %count = add i64 %positional, %named
  %all = add i64 %count, 1
  %copy = alloca ptr, i64 %all
  store ptr %self, ptr %copy
  %rest = getelementptr ptr, ptr %copy, i64 1
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %bytes, i1 false)
  %shifted = add i64 %positional, 1
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %copy, i64 %shifted, ptr %names)
  ret ptr %result
}

define ptr @tensorlang_dispatch(ptr %self, ptr %args, i64 %flags, ptr %names) {
entry:
  %state.at = getelementptr i8, ptr %self, i64 STATE_OFFSET
  %state = load ptr, ptr %state.at
  %positional = and i64 %flags, 9223372036854775807
  %has.names = icmp ne ptr %names, null
  br i1 %has.names, label %count.names, label %ready
count.names:
  %named.at = getelementptr %Tuple, ptr %names, i32 0, i32 2
  %found.named = load i64, ptr %named.at
  br label %ready
ready:
  %named = phi i64 [ 0, %entry ], [ %found.named, %count.names ]
  %tracing.at = getelementptr %Gate, ptr @gate, i32 0, i32 1
  %tracing = load i64, ptr %tracing.at
  %is.open = icmp eq i64 %tracing, 0
  br i1 %is.open, label %first, label %python
first:
  %head = load ptr, ptr %state
  br label %search
search:
  %plan = phi ptr [ %head, %first ], [ %following, %other ]
  %has.plan = icmp ne ptr %plan, null
  br i1 %has.plan, label %try, label %python
try:
  %matches = call i1 @matches(ptr %plan, ptr %args, i64 %positional, ptr %names, i64 %named)
  br i1 %matches, label %found, label %other
other:
  %following = load ptr, ptr %plan
  br label %search
found:
  %arguments = add i64 %positional, %named
  %outcome = call { ptr, i1 } @carry_out(ptr %plan, ptr %args, i64 %arguments)
  %is.final = extractvalue { ptr, i1 } %outcome, 1
  br i1 %is.final, label %return, label %python
return:
  %result = extractvalue { ptr, i1 } %outcome, 0
  ret ptr %result
python:
  %function.at = getelementptr %State, ptr %state, i32 0, i32 1
  %function = load ptr, ptr %function.at
  %answer = call ptr @slow(
      ptr %self, ptr %function, ptr %args, i64 %positional, ptr %names, i64 %named)
  ret ptr %answer
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
