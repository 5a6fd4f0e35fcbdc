"""Machine code by which the partitions of a program share its thread.

Each partition has a stack of its own (glibc's `swapcontext`). It runs until it waits for a phase of
an mbarrier that has not ended, then the next one does: an order that is the same each time. When
all that live have looked in vain since anything last changed, the wait would never end: it gives 0,
and so does every later one.

A scheduler: i64 current, count, idle looks, dead; then the partitions, a `ucontext_t` each, and
behind it done, function, its argument, stack. An mbarrier is an i64: from the highest bit on the
phase's parity, 20 bits of arrivals to come, 20 of those that a phase has, 22 of bytes to come.
"""

import re

from proton.dialect.partitions import HEAD_BYTES, PARTITION_BYTES, Runtime

_STACK_BYTES = 1 << 20  # a callee's buffers are 64 KiB at most (stack_buffers.py)
_OWN = 8000  # of a partition's state: where its own words begin
_NAME = re.compile(r"proton_(?:partitions|mbarrier)_")
_DECLARED = re.compile(r"^declare .*@proton_(?:partitions|mbarrier)_.*$", re.M)

_CODE = f"""
declare i32 @getcontext(ptr)
declare void @makecontext(ptr, ptr, i32, ...)
declare i32 @swapcontext(ptr, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

define internal ptr @proton_partition_word(i64 %s, i64 %word) {{
  %offset = mul i64 %word, 8
  %at = add i64 %s, %offset
  %p = inttoptr i64 %at to ptr
  ret ptr %p
}}

define internal ptr @proton_partition_own(i64 %s, i64 %number, i64 %offset) {{
  %skip = mul i64 %number, {PARTITION_BYTES}
  %first = add i64 %s, {HEAD_BYTES}
  %base = add i64 %first, %skip
  %at = add i64 %base, %offset
  %p = inttoptr i64 %at to ptr
  ret ptr %p
}}

define internal void @{Runtime.BEGIN}(i64 %s) {{
  %current = call ptr @proton_partition_word(i64 %s, i64 0)
  %count = call ptr @proton_partition_word(i64 %s, i64 1)
  %idle = call ptr @proton_partition_word(i64 %s, i64 2)
  %dead = call ptr @proton_partition_word(i64 %s, i64 3)
  %done = call ptr @proton_partition_own(i64 %s, i64 0, i64 {_OWN})
  store i64 0, ptr %current
  store i64 1, ptr %count
  store i64 0, ptr %idle
  store i64 0, ptr %dead
  store i64 0, ptr %done
  ret void
}}

define internal void @proton_partition_entry(i64 %s) noinline {{
  %current = call ptr @proton_partition_word(i64 %s, i64 0)
  %number = load i64, ptr %current
  %function_at = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN + 8})
  %argument_at = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN + 16})
  %function = load ptr, ptr %function_at
  %argument = load ptr, ptr %argument_at
  call void %function(ptr %argument)
  %done = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN})
  store i64 1, ptr %done
  %idle = call ptr @proton_partition_word(i64 %s, i64 2)
  store i64 0, ptr %idle
  call void @proton_partition_next(i64 %s)
  unreachable
}}

define internal void @{Runtime.START}(i64 %s, i64 %function, i64 %argument) {{
  %count_at = call ptr @proton_partition_word(i64 %s, i64 1)
  %number = load i64, ptr %count_at
  %count = add i64 %number, 1
  store i64 %count, ptr %count_at
  %done = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN})
  %function_at = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN + 8})
  %argument_at = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN + 16})
  %stack_at = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN + 24})
  store i64 0, ptr %done
  store i64 %function, ptr %function_at
  store i64 %argument, ptr %argument_at
  %stack = call ptr @aligned_alloc(i64 64, i64 {_STACK_BYTES})
  store ptr %stack, ptr %stack_at
  %context = call ptr @proton_partition_own(i64 %s, i64 %number, i64 0)
  call i32 @getcontext(ptr %context)
  %link = call ptr @proton_partition_own(i64 %s, i64 %number, i64 8)
  %base = call ptr @proton_partition_own(i64 %s, i64 %number, i64 16)
  %size = call ptr @proton_partition_own(i64 %s, i64 %number, i64 32)
  store ptr null, ptr %link
  store ptr %stack, ptr %base
  store i64 {_STACK_BYTES}, ptr %size
  call void (ptr, ptr, i32, ...) @makecontext(
      ptr %context, ptr @proton_partition_entry, i32 1, i64 %s)
  ret void
}}

define internal void @proton_partition_next(i64 %s) noinline {{
entry:
  %current_at = call ptr @proton_partition_word(i64 %s, i64 0)
  %count_at = call ptr @proton_partition_word(i64 %s, i64 1)
  %current = load i64, ptr %current_at
  %count = load i64, ptr %count_at
  br label %look
look:
  %last = phi i64 [ %current, %entry ], [ %next, %look ]
  %behind = add i64 %last, 1
  %wraps = icmp eq i64 %behind, %count
  %next = select i1 %wraps, i64 0, i64 %behind
  %done_at = call ptr @proton_partition_own(i64 %s, i64 %next, i64 {_OWN})
  %done = load i64, ptr %done_at
  %is_done = icmp ne i64 %done, 0
  br i1 %is_done, label %look, label %found
found:
  %same = icmp eq i64 %next, %current
  br i1 %same, label %out, label %switch
switch:
  store i64 %next, ptr %current_at
  %from = call ptr @proton_partition_own(i64 %s, i64 %current, i64 0)
  %to = call ptr @proton_partition_own(i64 %s, i64 %next, i64 0)
  call i32 @swapcontext(ptr %from, ptr %to)
  br label %out
out:
  ret void
}}

define internal void @proton_partition_idle(i64 %s) {{
  %idle_at = call ptr @proton_partition_word(i64 %s, i64 2)
  %dead_at = call ptr @proton_partition_word(i64 %s, i64 3)
  %count_at = call ptr @proton_partition_word(i64 %s, i64 1)
  %before = load i64, ptr %idle_at
  %idle = add i64 %before, 1
  store i64 %idle, ptr %idle_at
  %count = load i64, ptr %count_at
  %twice = mul i64 %count, 2
  %over = icmp ugt i64 %idle, %twice
  %was = load i64, ptr %dead_at
  %now = zext i1 %over to i64
  %dead = or i64 %was, %now
  store i64 %dead, ptr %dead_at
  call void @proton_partition_next(i64 %s)
  ret void
}}

define internal void @{Runtime.JOIN}(i64 %s) noinline {{
entry:
  %count_at = call ptr @proton_partition_word(i64 %s, i64 1)
  %count = load i64, ptr %count_at
  br label %each
each:
  %number = phi i64 [ 1, %entry ], [ %following, %over ]
  %any = icmp ult i64 %number, %count
  br i1 %any, label %look, label %out
look:
  %done_at = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN})
  %done = load i64, ptr %done_at
  %is_done = icmp ne i64 %done, 0
  br i1 %is_done, label %over, label %wait
wait:
  call void @proton_partition_idle(i64 %s)
  br label %look
over:
  %stack_at = call ptr @proton_partition_own(i64 %s, i64 %number, i64 {_OWN + 24})
  %stack = load ptr, ptr %stack_at
  call void @free(ptr %stack)
  %following = add i64 %number, 1
  br label %each
out:
  store i64 1, ptr %count_at
  ret void
}}

define internal void @{Runtime.INIT}(i64 %s, i64 %barrier, i64 %count) {{
  %p = inttoptr i64 %barrier to ptr
  %coming = shl i64 %count, 42
  %all = shl i64 %count, 22
  %word = or i64 %coming, %all
  store i64 %word, ptr %p
  %idle = call ptr @proton_partition_word(i64 %s, i64 2)
  store i64 0, ptr %idle
  ret void
}}

define internal void @{Runtime.UPDATE}(i64 %s, i64 %barrier, i64 %arrivals, i64 %more) {{
entry:
  %idle = call ptr @proton_partition_word(i64 %s, i64 2)
  store i64 0, ptr %idle
  %p = inttoptr i64 %barrier to ptr
  %word = load i64, ptr %p
  %phase = and i64 %word, -9223372036854775808
  %high = lshr i64 %word, 42
  %were = and i64 %high, 1048575
  %middle = lshr i64 %word, 22
  %all = and i64 %middle, 1048575
  %low = and i64 %word, 4194303
  %left = sub i64 %were, %arrivals
  %sum = add i64 %low, %more
  %bytes = and i64 %sum, 4194303
  %none = icmp eq i64 %left, 0
  %nothing = icmp eq i64 %bytes, 0
  %ends = and i1 %none, %nothing
  %other = xor i64 %phase, -9223372036854775808
  %new_phase = select i1 %ends, i64 %other, i64 %phase
  %rest = and i64 %left, 1048575
  %new_left = select i1 %ends, i64 %all, i64 %rest
  %coming = shl i64 %new_left, 42
  %counts = shl i64 %all, 22
  %a = or i64 %new_phase, %coming
  %b = or i64 %counts, %bytes
  %new = or i64 %a, %b
  store i64 %new, ptr %p
  ret void
}}

define internal i64 @{Runtime.WAIT}(i64 %s, i64 %barrier, i64 %phase) noinline {{
entry:
  %p = inttoptr i64 %barrier to ptr
  %asked = and i64 %phase, 1
  %dead_at = call ptr @proton_partition_word(i64 %s, i64 3)
  br label %look
look:
  %word = load volatile i64, ptr %p
  %now = lshr i64 %word, 63
  %is_over = icmp ne i64 %now, %asked
  br i1 %is_over, label %over, label %check
over:
  %idle = call ptr @proton_partition_word(i64 %s, i64 2)
  store i64 0, ptr %idle
  ret i64 1
check:
  %dead = load i64, ptr %dead_at
  %is_dead = icmp ne i64 %dead, 0
  br i1 %is_dead, label %never, label %idles
idles:
  call void @proton_partition_idle(i64 %s)
  br label %look
never:
  ret i64 0
}}
"""


def with_partitions(text: str) -> str:
    """LLVM IR together with the functions of this module that it declares, if there are any."""
    if not _NAME.search(text):
        return text
    own = _CODE
    for name in ("aligned_alloc", "free"):
        if re.search(rf"^declare .*@{name}\(", text, re.M):
            own = re.sub(rf"^declare .*@{name}\(.*\n", "", own, flags=re.M)
    return _DECLARED.sub("", text) + own
