"""What of Triton's public names Proton has not, and why: by module, or by name."""

_COMPILER = "it is a part of Triton's compiler, which Proton is not made of"
_LINKS = "proton-link writes what links compiled kernels; its parts have no names of their own"
_STUBS = "Proton compiles no C: kernels are launched without a stub of their own"
_SESSIONS = "sessions are Proton's own: proton.start, proton.profile"
_KNOBS = "knobs are no classes here: proton.knobs"

ABSENT = {
    "triton._C": "it is Triton's own compiler in C++",
    "triton._filecheck": _COMPILER,
    "triton._instrumentation": _SESSIONS,
    "triton._internal_testing": "processes of Triton's own tests",
    "triton._utils": _COMPILER,
    "triton.backends.amd": "AMD's GPUs are not supported",
    "triton.backends.compiler": _COMPILER,
    "triton.backends.driver": "drivers are Proton's own: triton.runtime.driver.active",
    "triton.backends.nvidia": _COMPILER,
    "triton.compiler": _COMPILER,
    "triton.experimental.gluon.amd": "AMD's GPUs are not supported",
    "triton.experimental.gluon.language": "it is how Triton is made, or of a later chip",
    "triton.experimental.gluon.language.amd": "AMD's GPUs are not supported",
    "triton.experimental.gluon.language.fpsan": "it is a part of Triton's sanitizers",
    "triton.experimental.gluon.language.nvidia.blackwell": "it is of Blackwell",
    "triton.experimental.gsan": "gsan is not there",
    "triton.knobs": _KNOBS,
    "triton.language.core": _COMPILER,
    "triton.language.extra": _COMPILER,
    "triton.language.extra.cuda": "conversions of 8-bit floats are x.to(...)",
    "triton.language.extra.hip": "AMD's GPUs are not supported",
    "triton.language.extra.libdevice": "NVIDIA's library has no such function",
    "triton.language.semantic": _COMPILER,
    "triton.language.standard": "it is how Triton sorts: tl.sort",
    "triton.profiler": _SESSIONS,
    "triton.profiler.language": "records are proton.scope's; there is no op for one of them",
    "triton.profiler.hooks.launch": "a launch hook's own state",
    "triton.profiler.metric": "metrics are computed on the host, not by kernels of their own",
    "triton.profiler.mode": "modes are what proton.profiler.mode has",
    "triton.profiler.proton": "python -m proton is the command",
    "triton.profiler.specs": "of chips max_flops and max_bps know what is known",
    "triton.profiler.viewer": "it is how Triton reads files; proton-tile is the command",
    "triton.runtime": "it is how Triton is made: Proton has the names that programs use",
    "triton.runtime.build": _STUBS,
    "triton.runtime.interpreter": "the interpreter is Proton's own: TRITON_INTERPRET=1",
    "triton.testing": "it is measured in another way",
    "triton.testing.cuda_memcheck": (
        "PROTON_CHECK_BOUNDS=1 on the CPU, NVIDIA's compute-sanitizer on a GPU"
    ),
    "triton.testing.do_bench_cudagraph_proton": "do_bench_cudagraph measures, a session shows it",
    "triton.testing.do_bench_proton": "a session has the times of kernels: proton.profile",
    "triton.testing.set_gpu_clock": "nvidia-smi does it from a shell",
    "triton.tools": "it is a part of Triton's compiler",
    "triton.tools.build_extern": "tl.extern_elementwise takes a table of functions",
    "triton.tools.compile": "proton-compile is the command",
    "triton.tools.gsan": "gsan is not there",
    "triton.tools.link": _LINKS,
    "triton.tools.triton_to_gluon_translator": "it is a tool of Triton's compiler",
}


def reason(name: str) -> str:
    """Why there is no such name; "" where no reason is known."""
    while name:
        if name in ABSENT:
            return ABSENT[name]
        name = name.rpartition(".")[0]
    return ""
