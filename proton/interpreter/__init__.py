"""Runs kernels op by op over numpy: `PROTON_INTERPRET=1`, or `@proton.jit(interpret=True)`.

A kernel's body stays a Python function, so a debugger steps through it (rewrite.py). What an
expression means the front end says: it emits IR for the one op (steps.py), and a table from ops to
numpy evaluates that (plan.py). So there is one place that knows the types, the errors and the
messages of the language, and here is only what ops compute.
"""
