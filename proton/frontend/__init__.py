"""Python AST to `tt` + `proton` IR."""

from proton.frontend.module import build_module as build_module
from proton.language.signature import Signature as Signature
