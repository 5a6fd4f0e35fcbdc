"""The description of kernels and machine in a run."""

import contextlib
import linecache
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from proton.backends.compiler import CompiledKernel
from proton.base.knobs import knobs
from proton.base.locations import ptx_files
from proton.trace.model import BOOT, COMMIT, ROLES, Kernel

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def kernel_model(
    kernel: CompiledKernel, noted: dict[str, object], *, keeps_code: bool = False
) -> Kernel:
    """A compiled kernel as the run keeps it; `noted` is what else is said of it. Of one without
    scopes the code is kept where that is asked for."""
    profile = kernel.profile
    stages = kernel.metadata.get("num_stages")
    noted = noted if stages is None else {"num_stages": stages, **noted}
    model = Kernel(
        name=kernel.name,
        key=kernel.key,
        target=kernel.metadata["target"],
        strategy=None,
        scopes=(),
        options={"signature": kernel.metadata.get("signature", ""), **noted},
        code=kernel.asm.for_runs() if keeps_code or profile is not None else {},
    )
    if profile is None:
        return model
    roles = {ROLES: list(profile.roles)} if profile.roles else {}
    return replace(
        model,
        options={**model.options, **roles},
        strategy=profile.strategy,
        scopes=profile.table.scopes,
        optimized_out=profile.table.optimized_out,
        units=profile.units,
        unit_warps=profile.unit_warps,
        payload_slots=profile.schema.payload_slots,
        clock_bits=profile.schema.clock_bits,
    )


def source_files(kernels: Iterable[Kernel]) -> dict[str, str]:
    """The text of the files that scopes are in, or code that was sampled, and of cells of
    notebooks, as Python read them."""
    files = dict.fromkeys(s.file for kernel in kernels for s in kernel.scopes if s.file)
    for kernel in kernels:
        if kernel.pc_samples is not None:
            files |= dict.fromkeys(ptx_files(kernel.code.get("ptx", "")))
    return {file: text for file in files if (text := "".join(linecache.getlines(file)))}


def machine_facts() -> dict[str, object]:
    """The machine, for display, and to tell which runs share its monotonic clock."""
    facts: dict[str, object] = {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "threads": _threads(),
    }
    with contextlib.suppress(OSError):  # Linux alone has it
        facts[BOOT] = _BOOT_ID.read_text().strip()
    if commit := knobs.commit or _commit():
        facts[COMMIT] = commit
    return facts


def _commit() -> str:
    """What is checked out in the repository of the program, else of the working folder; empty where
    there is none. It is read from git's files: to start git takes longer than most sessions."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    for place in (*([Path(main).parent] if main else []), Path()):
        try:
            folder = place.absolute()
        except OSError:  # the working folder is gone
            continue
        for parent in (folder, *folder.parents):
            with contextlib.suppress(OSError, ValueError):
                if (parent / ".git").exists():
                    return _checked_out(parent / ".git")
    return ""


def _checked_out(git: Path) -> str:
    """The commit of a repository, or of a worktree, whose `.git` is a file."""
    if git.is_file():
        git = git.parent / git.read_text().strip().removeprefix("gitdir: ")
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    name, shared = head.removeprefix("ref: "), git / "commondir"
    common = git / shared.read_text().strip() if shared.is_file() else git
    for place in (git, common):
        if (place / name).is_file():
            return (place / name).read_text().strip()
    packed = (line.split() for line in (common / "packed-refs").read_text().splitlines())
    return next((words[0] for words in packed if words[1:] == [name]), "")


def _threads() -> int:
    """How many run programs on the processor."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return knobs.num_threads if isinstance(knobs.num_threads, int) else cores
