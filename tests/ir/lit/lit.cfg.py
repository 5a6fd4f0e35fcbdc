"""lit's settings: tests are the `.mlir` files here; their tools run in this interpreter."""

# ruff: noqa: F821
import sys

import lit.formats

config.name = "proton"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(__file__).rpartition("/")[0]
config.test_exec_root = lit_config.params.get("exec_root", config.test_source_root + "/Output")
config.environment["PYTHONPATH"] = config.test_source_root.rpartition("/tests/")[0]
_opt, _filecheck = (f"{sys.executable} -m {module}" for module in ("proton.tools.opt", "filecheck"))
config.substitutions += [(r"\bproton-opt\b", _opt), (r"\bfilecheck\b", _filecheck)]
