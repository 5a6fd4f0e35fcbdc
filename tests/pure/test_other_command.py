"""Whose `proton-viewer` is on PATH: ours, Triton's, or nobody can tell."""

from pathlib import Path

import pytest

from proton.viewer.cli.other_command import owner_of_alias
from tests.tables import check_rows

TRITON = "#!/bin/python3\nimport sys\nfrom triton.profiler.viewer import main\nsys.exit(main())\n"
OURS = "#!/bin/python3\nimport sys\nfrom proton.viewer.cli import main\nsys.exit(main())\n"
SHIM = '#!/bin/sh\nexec pyenv exec "$0"\n'


def test_the_alias_is_ours_or_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tmp_path / "proton-viewer"

    def check(text: str, module: str | None) -> None:
        found.write_text(text)
        found.chmod(0o755)
        assert owner_of_alias() == (module and (str(found), module))

    monkeypatch.setenv("PATH", str(tmp_path))
    assert owner_of_alias() is None  # there is none
    binary = "\x7fELF\udcff"
    rows = [(TRITON, "triton.profiler.viewer"), (OURS, None), (SHIM, None), ("", None)]
    check_rows(check, rows)
    found.write_bytes(binary.encode(errors="surrogateescape"))
    assert owner_of_alias() is None
