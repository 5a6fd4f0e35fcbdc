"""Types of the MLIR bindings, as far as Proton uses them; the wheel has none. For `mlir.py` alone.

What only a subclass has (the shape of a tensor type, the value of an attribute, the operands of an
op by their names) is open: see `__getattr__` in `ir.pyi`. All else is checked.
"""
