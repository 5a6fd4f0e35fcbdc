"""`proton-link`: one C function of several that `proton-compile` wrote.

Like `triton.tools.link`. Of headers of one kernel it makes OUT.h and OUT.c: `NAME(..., algo_id)`
and `NAME_default(...)` call the variant that is for such values, `load_NAME` and `unload_NAME`
load all of them.
"""

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.tools import ahead_sources
from proton.tools.ahead_variant import MARK, AheadVariant, c_name

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def link(
    headers: Annotated[list[Path], typer.Argument(help="Headers of variants.", exists=True)],
    out: Annotated[Path, typer.Option("--out", "-o", help="What is written, without a suffix.")],
    prefix: Annotated[
        str, typer.Option(help="In the place of the kernel's name, for the functions.")
    ] = "",
) -> None:
    """Writes the dispatcher of a kernel's variants."""
    try:
        algorithms = _algorithms([_variant(header) for header in headers])
        name = c_name(prefix) or algorithms[0][0].base
        source = ahead_sources.dispatcher_source(name, f"{out.name}.h", algorithms)
        files = {"h": ahead_sources.dispatcher_header(name, algorithms), "c": source}
        if not out.name:
            raise ProtonError(f"-o names files without their suffix, got {str(out)!r}")
        out.parent.mkdir(parents=True, exist_ok=True)
        for suffix, text in files.items():
            file = out.with_name(f"{out.name}.{suffix}")
            file.write_text(text)
            print(file)
    except (ProtonError, OSError) as problem:
        print(f"proton-link: {problem}", file=sys.stderr)
        raise typer.Exit(1) from None


def _variant(header: Path) -> AheadVariant:
    for line in header.read_text().splitlines():
        if line.startswith(MARK):
            with contextlib.suppress(LookupError, TypeError, ValueError):  # of another form
                return AheadVariant.of_line(line)
    raise ProtonError(f"{header} is no header of proton-compile's")


def _algorithms(variants: list[AheadVariant]) -> list[list[AheadVariant]]:
    """The variants by algorithm, in the order in which they are given."""
    first = variants[0]
    found: dict[str, list[AheadVariant]] = {}
    for variant in variants:
        for what, ours, theirs in (
            ("kernels", first.kernel, variant.kernel),
            ("targets", first.target, variant.target),
            ("parameters", _types(first), _types(variant)),
        ):
            if ours != theirs:
                raise ProtonError(f"the headers are of two {what}: {ours} and {theirs}")
        found.setdefault(variant.algorithm, []).append(variant)
    return list(found.values())


def _types(variant: AheadVariant) -> str:
    return ", ".join(f"{parameter.name}: {parameter.type}" for parameter in variant.parameters)


def main() -> None:
    """The entry point."""
    app(prog_name="proton-link")


if __name__ == "__main__":
    main()
