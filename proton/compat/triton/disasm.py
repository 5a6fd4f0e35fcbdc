"""`triton.tools.disasm`: machine code of NVIDIA's GPUs as text. That of one's own kernels is
`kernel.asm["sass"]`."""

from pathlib import Path

from proton.base.nvidia_tools import disassemble


def get_sass(cubin_asm: bytes, fun: str | None = None) -> str:
    """The text of a cubin; with `fun` what is of functions whose name has that in it. Raises
    ProtonError where the disassembler is not to be found."""
    text = disassemble(cubin_asm)
    if not fun:
        return text
    sections = text.split("\n\t.section\t")
    return "\n\t.section\t".join(part for part in sections if f".text.{fun}" in part)


def extract(file_path: str | Path, fun: str | None) -> str:
    """That of a file."""
    return get_sass(Path(file_path).read_bytes(), fun)
