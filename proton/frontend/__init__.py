"""Python AST to `tt` + `proton` IR."""

from proton.frontend.codegen import build_module as build_module
from proton.frontend.signature import Signature as Signature
