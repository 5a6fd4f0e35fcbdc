"""lit's settings: tests are the `.mlir` files here; their tools run in this interpreter.

`--param server=SOCKET` has them run by tests/ir/tool_server.py, which saves their start.
"""

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
if "server" in lit_config.params:
    _client = config.test_source_root.rpartition("/")[0] + "/tool_client.py"
    _call = f"{sys.executable} -I -S {_client} {lit_config.params['server']}"
    _opt, _filecheck = f"{_call} proton-opt", f"{_call} filecheck"
config.substitutions += [(r"\bproton-opt\b", _opt), (r"\bfilecheck\b", _filecheck)]
