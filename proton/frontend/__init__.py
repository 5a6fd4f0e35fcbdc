"""Python AST to `tt` + `proton` IR."""

from proton.frontend.codegen import Signature as Signature
from proton.frontend.codegen import build_module as build_module
