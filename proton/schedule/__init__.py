"""Schedules of loops: what begins when, in which buffer, and which warps do it.

loads.py        questions: which loads may begin iterations early, and what they need for it
dots.py         the decision where dots of warp groups have ended
partitions.py   the decision which warp groups alternate at the tensor cores
roles.py        the decision which loops have a warp for their copies, and which dots are delayed
planning.py     the decision on a function's loops, of all of these
plan.py         LoopSchedule, which they leave; its text is `kernel.asm["schedule"]`
expand.py, and what it calls: in_order.py, pipelined_loop.py, pipelined_tiles.py, specialized.py,
                delayed.py, buffers.py: the IR of a schedule. No decision is taken there
"""
