"""An op's class takes the arguments that its signature says, and refuses others as Python does."""

from collections.abc import Callable

import numpy as np

from proton.dialect import tt
from proton.dialect.context import DIALECTS, mlir_context
from proton.dialect.mlir import arith, ir

GIVEN = object()


def refusal(function: Callable[..., object], *args: object, **named: object) -> str:
    """What a call's TypeError says; nothing where it raises something else, or nothing."""
    try:
        function(*args, **named)
    except TypeError as problem:
        return str(problem)
    except Exception:  # a value that is none of MLIR's
        return ""
    return ""


def test_arguments_are_bound_as_the_signature_says(rng: np.random.Generator) -> None:
    """Random ones, none of which an op takes: what Python's binding refuses has its words."""
    classes = [op for dialect in DIALECTS for op in dialect.operations]
    refused = 0
    with mlir_context():
        for _ in range(2000):
            cls = classes[rng.integers(len(classes))]
            signature = cls.__init__.__signature__
            names = [name for name in signature.parameters if name != "self"]
            args = [GIVEN] * int(rng.integers(len(names) + 2))
            named = dict.fromkeys([n for n in [*names, "other"] if rng.random() < 0.3], GIVEN)
            if says := refusal(signature.bind, GIVEN, *args, **named):
                assert refusal(cls, *args, **named) == says, (cls, args, named)
                refused += 1
    assert refused > 500


def test_names_and_places_of_arguments_mean_the_same() -> None:
    with mlir_context():
        module = ir.Module.create()
        type_ = ir.RankedTensorType.get([4], ir.F32Type.get())
        with ir.InsertionPoint(module.body):
            one = arith.ConstantOp(ir.F32Type.get(), 1.0).result
            ops = [tt.SplatOp(one, type_), tt.SplatOp(result=type_, src=one)]
        assert str(ops[0]).partition("=")[2] == str(ops[1]).partition("=")[2]
