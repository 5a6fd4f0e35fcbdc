"""Where the text of a kernel is, as Triton's tools ask, and as they say of kernels that they make
out of the text of others."""

from typing import Any

from proton.language.source import Source


class PlacedKernel:
    """The place of a kernel's source. Its file and the line of its `def` may be set: IR, records
    and errors have them. The rest is kept for who asks."""

    source: Source

    def __init__(self) -> None:
        self._said: dict[str, Any] = {}

    def _set_source(self, source: Source) -> None:
        raise NotImplementedError

    @property
    def file_name(self) -> str:
        """The file that it is in."""
        return self.source.file

    @file_name.setter
    def file_name(self, file: str) -> None:
        self._set_source(self.source.moved(file, self.def_file_line_number))

    @property
    def def_file_line_number(self) -> int:
        """The number of the line of its `def`."""
        return self.source.tree.lineno

    @def_file_line_number.setter
    def def_file_line_number(self, line: int) -> None:
        self._set_source(self.source.moved(self.source.file, line))

    @property
    def def_file_col_number(self) -> int:
        """The column of its `def`, from 1."""
        return int(self._said.get("column", self.source.tree.col_offset + 1))

    @def_file_col_number.setter
    def def_file_col_number(self, column: int) -> None:
        self._said["column"] = column

    @property
    def raw_src(self) -> list[str]:
        """The lines of the source, with its decorators."""
        return list(self._said.get("lines", self.source.block))

    @raw_src.setter
    def raw_src(self, lines: list[str]) -> None:
        self._said["lines"] = lines

    @property
    def starting_line_number(self) -> int:
        """The number of the first of them."""
        return int(self._said.get("first", self.source.first_line))

    @starting_line_number.setter
    def starting_line_number(self, line: int) -> None:
        self._said["first"] = line
