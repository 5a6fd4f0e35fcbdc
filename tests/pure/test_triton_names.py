"""The page of Triton's names, against what Proton has of them."""

from tests.processes import python

CODE = """
import sys
sys.path.insert(0, "scripts")
import proton
proton.install_as_triton()
import triton_names
from proton.compat.triton.absent import ABSENT, reason

lacking = [(m, n) for m, has, lacks in triton_names.rows() for n in lacks]
print([f"{m}.{n}" for m, n in lacking if not reason(f"{m}.{n}")])
listed = triton_names.NAMES.read_text()
print([name for name in ABSENT if not any(f"{m}.{n}.".startswith(f"{name}.") for m, n in lacking)])
text = triton_names.page()
print([n for m, has, lacks in triton_names.rows() for n in has or [] if f"`{n}`" not in text])
"""


def test_the_page_has_every_public_name_and_a_reason_for_each_that_is_not_there() -> None:
    done = python("-c", CODE)
    assert done.returncode == 0, done.stderr
    without_reason, needless, missing = done.stdout.splitlines()
    assert without_reason == "[]"
    assert needless in ("[]", "['triton._C', 'triton._instrumentation']")  # of private modules
    assert missing == "[]"
