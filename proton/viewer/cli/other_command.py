"""The command's older name, which another package may have taken.

`proton-tile` is ours alone. `proton-viewer` is a command of Triton's wheel, too, which comes with
torch: whichever was installed last has it, and uninstalling either takes it away.
"""

import re
import shutil
from pathlib import Path

ALIAS, PACKAGE = "proton-viewer", "proton"


def owner_of_alias() -> tuple[str, str] | None:
    """Where `proton-viewer` on PATH is, and the module that it runs, if that is not ours; None too
    where it is no script of Python's, and so nothing says what it runs."""
    found = shutil.which(ALIAS)
    if found is None:
        return None
    try:
        text = Path(found).read_bytes().decode(errors="replace")
    except OSError:
        return None
    modules = re.findall(r"^\s*from ([\w.]+) import", text, re.M)
    is_ours = any(name.split(".")[0] == PACKAGE for name in modules)
    return None if is_ours or not modules else (found, modules[-1])
