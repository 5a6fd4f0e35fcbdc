"""What scripts/install.py gives to pip."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-demo.lock"])
def test_all_that_a_lock_says_is_said_of_some_package(lock: str) -> None:
    install = runpy.run_path(str(ROOT / "scripts/install.py"))
    text = (ROOT / lock).read_text()
    packages = install["packages_of"](text)
    said = [line for line in text.splitlines() if line and not line.startswith("#")]
    lines = "".join(packages).splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == said
    names = [package.split("==")[0] for package in packages]
    assert {"numpy", "llvmlite"} < set(names)
    assert all(name.replace("-", "").isalnum() for name in names)
    assert all("--hash=sha256:" in package for package in packages)
