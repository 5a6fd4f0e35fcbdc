"""A function's lines are cut out of its file, and its AST walked, as Python's own modules do it."""

import ast
import gc
import inspect
import linecache
import runpy
import sysconfig
from pathlib import Path

import numpy as np

from proton.language.function import DeviceFunction, nodes_below
from proton.language.source import function_lines

FILES = 25  # of the standard library, in each run
AWKWARD = '''
@decorate(
    1,
)
def several_lines(
    a,
    b,
) -> int:
    """Text
that is indented less."""
    # a comment
# another one, indented less
    if a:
        return (b
  + 1)
    # behind it
# not of it
def one_line(): return 1
    # not of it, either
class Outer:
    def method(self):
        x = 1 + \\
2
        return x

    async_ = 1
def nested():
    def inner():
        pass
    return inner
    # the last line'''


def compared(lines: list[str], tree: ast.AST) -> int:
    """Checks the functions of a text; how many there are."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in found:
        start = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
        block, parsed = function_lines(lines, start)
        assert block == inspect.getblock(lines[start:]), "".join(block)
        if parsed is not None:
            assert (parsed.name, parsed.lineno) == (node.name, node.lineno)
            if node.col_offset == 0:  # dedenting changes the lines of a string
                assert ast.unparse(parsed) == ast.unparse(node)
        below = [one for part in node.body for one in ast.walk(part)]
        assert {id(one) for one in nodes_below(node.body)} == {id(one) for one in below}
    return len(found)


def test_a_function_is_what_python_takes_for_it(rng: np.random.Generator) -> None:
    assert compared(AWKWARD.splitlines(keepends=True), ast.parse(AWKWARD)) == 5
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    count = 0
    for file in rng.choice(np.array(files, dtype=object), FILES, replace=False):
        lines = linecache.getlines(str(file))
        count += compared(lines, ast.parse("".join(lines)))
    assert count > 100


def test_trees_do_not_stay(tmp_path: Path) -> None:
    """Where a process has had the keys of many kernels; and each tree is made again as it was."""
    count, name, file = 300, "one_of_many", tmp_path / "many.py"
    lines = [
        f"    def {name}(x):\n        return x + {number}\n    made.append({name})\n"
        for number in range(count)
    ]
    file.write_text("made = []\nif True:\n" + "".join(lines))
    functions = [DeviceFunction(fn) for fn in runpy.run_path(str(file))["made"]]
    trees = [ast.dump(fn.parse(), include_attributes=True) for fn in functions]
    assert len({fn.source_key() for fn in functions}) == count == len(set(trees))
    gc.collect()
    there = [of for of in gc.get_objects() if isinstance(of, ast.FunctionDef) and of.name == name]
    assert len(there) < count / 2
    assert [ast.dump(fn.parse(), include_attributes=True) for fn in functions] == trees
