"""Schedules of loops: what begins when, in which buffer, and which warps do it.

loads.py        questions: which loads may begin iterations early, and what they need for it
dots.py         the decision where dots of warp groups have ended
partitions.py   the decision which warp groups alternate at the tensor cores
planning.py     the decision on a function's loops, of all of these
plan.py         LoopSchedule, which they leave; its text is `kernel.asm["schedule"]`
expand.py, expand_tiles.py, buffers.py   the IR of a schedule: no decision is taken here
"""
