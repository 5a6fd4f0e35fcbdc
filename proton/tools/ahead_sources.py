"""The C sources that `proton-compile` and `proton-link` write.

They need a C compiler and no header of CUDA's: what they call of the driver is declared here and
found in libcuda.so.1 when the kernel is loaded. Functions return CUDA's error numbers, 0 for none.
"""

from collections.abc import Sequence

from proton.base.targets import WARP_SIZE
from proton.tools.ahead_variant import AheadVariant, c_name

_INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE: no variant is for these arguments
_BYTES_PER_LINE = 24

_PROLOGUE = """\
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""
_EPILOGUE = """
#ifdef __cplusplus
}
#endif
"""
_STREAM = """
#ifndef PROTON_STREAM
#define PROTON_STREAM
typedef struct CUstream_st *ProtonStream; /* CUstream, cudaStream_t */
#endif
"""

_GPU_SOURCE = """\
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include "{header}"

static const unsigned char proton_code[] = {{
{code}
}};

/* Of the CUDA driver, as cuda.h declares it. */
enum {{
  PROTON_LIBRARY_NOT_FOUND = 302,
  PROTON_FUNCTION_NOT_FOUND = 500,
  PROTON_MAX_DYNAMIC_SHARED_BYTES = 8
}};
static int (*proton_module_load)(void **module, const void *image);
static int (*proton_module_unload)(void *module);
static int (*proton_module_function)(void **function, void *module, const char *name);
static int (*proton_set_attribute)(void *function, int attribute, int value);
static int (*proton_launch_kernel)(void *function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, ProtonStream stream,
                                   void **arguments, void **extra);

static void *proton_module, *proton_loaded;
static pthread_mutex_t proton_lock = PTHREAD_MUTEX_INITIALIZER;

static int proton_find_driver(void) {{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return PROTON_LIBRARY_NOT_FOUND;
  *(void **)&proton_module_load = dlsym(driver, "cuModuleLoadData");
  *(void **)&proton_module_unload = dlsym(driver, "cuModuleUnload");
  *(void **)&proton_module_function = dlsym(driver, "cuModuleGetFunction");
  *(void **)&proton_set_attribute = dlsym(driver, "cuFuncSetAttribute");
  *(void **)&proton_launch_kernel = dlsym(driver, "cuLaunchKernel");
  return proton_module_load && proton_module_unload && proton_module_function &&
                 proton_set_attribute && proton_launch_kernel
             ? 0 : PROTON_FUNCTION_NOT_FOUND;
}}

int load_{name}(void) {{
  int status = 0;
  pthread_mutex_lock(&proton_lock);
  if (!proton_loaded) {{
    void *found = NULL;
    status = proton_find_driver();
    if (!status) status = proton_module_load(&proton_module, proton_code);
    if (!status) status = proton_module_function(&found, proton_module, "{symbol}");
    if (!status && {shared} > {static_shared})
      status = proton_set_attribute(found, PROTON_MAX_DYNAMIC_SHARED_BYTES, {shared});
    if (!status) proton_loaded = found;
  }}
  pthread_mutex_unlock(&proton_lock);
  return status;
}}

int unload_{name}(void) {{
  int status = 0;
  pthread_mutex_lock(&proton_lock);
  if (proton_loaded) status = proton_module_unload(proton_module);
  proton_loaded = NULL;
  pthread_mutex_unlock(&proton_lock);
  return status;
}}

int {name}({declared}) {{
  const int proton_status = proton_loaded ? 0 : load_{name}();
  if (proton_status) return proton_status;
{constants}  const int64_t grid_x = {grid[0]}, grid_y = {grid[1]}, grid_z = {grid[2]};
  void *proton_arguments[] = {{{addresses}}};
  if (grid_x <= 0 || grid_y <= 0 || grid_z <= 0) return 0;
  if (grid_x > INT32_MAX || grid_y > INT32_MAX || grid_z > INT32_MAX) return {invalid};
  return proton_launch_kernel(proton_loaded, (unsigned)grid_x, (unsigned)grid_y, (unsigned)grid_z,
                              {threads}, 1, 1, {shared}, stream, proton_arguments, NULL);
}}
"""

_CPU_SOURCE = """\
#include "{header}"

int load_{name}(void) {{ return 0; }}

int unload_{name}(void) {{ return 0; }}

int {name}({declared_or_void}) {{
{constants}  const int64_t grid_x = {grid[0]}, grid_y = {grid[1]}, grid_z = {grid[2]};
  if (grid_x <= 0 || grid_y <= 0 || grid_z <= 0) return 0;
  if (grid_x > INT32_MAX || grid_y > INT32_MAX || grid_z > INT32_MAX) return {invalid};
  {name}_range({arguments}(int32_t)grid_x, (int32_t)grid_y, (int32_t)grid_z, 0,
      grid_x * grid_y * grid_z);
  return 0;
}}
"""


def header(variant: AheadVariant) -> str:
    """The header of one variant."""
    name, on_cpu = variant.name, variant.target == "cpu"
    declared = variant.declared(variant.passed) or "void"
    lines = [f"#pragma once\n{variant.line()}", _PROLOGUE + ("" if on_cpu else _STREAM)]
    lines.append(f"int load_{name}(void);\nint unload_{name}(void);\nint {name}({declared});")
    if on_cpu:
        numbers = "int32_t grid_x, int32_t grid_y, int32_t grid_z, "
        numbers += "int64_t first_program, int64_t end_program"
        both = ", ".join(part for part in (variant.declared(variant.passed), numbers) if part)
        lines.append(
            "/* Programs first_program to end_program - 1, for threads of one's own. */\n"
            f"void {name}_range({both});"
        )
    return "\n".join(lines) + _EPILOGUE


def gpu_source(
    variant: AheadVariant,
    grid: Sequence[str],
    constants: dict[str, object],
    code: bytes,
    *,
    symbol: str,
    shared: int,
    warps: int,
    static_shared: int,
) -> str:
    """The source of a variant for a GPU, with its cubin in it."""
    rows = [code[at : at + _BYTES_PER_LINE] for at in range(0, len(code), _BYTES_PER_LINE)]
    return _GPU_SOURCE.format(
        header=f"{variant.name}.h",
        invalid=_INVALID_VALUE,
        code="\n".join("  " + "".join(f"{byte}," for byte in row) for row in rows),
        name=variant.name,
        symbol=symbol,
        shared=shared,
        static_shared=static_shared,
        declared=variant.declared(variant.passed),
        constants=_declared(constants),
        grid=[f"({size})" for size in grid],
        addresses=", ".join(f"&{p.c_name}" for p in variant.passed) or "NULL",
        threads=warps * WARP_SIZE,
    )


def cpu_source(variant: AheadVariant, grid: Sequence[str], constants: dict[str, object]) -> str:
    """The source of a variant for the CPU; its machine code is an object beside it."""
    return _CPU_SOURCE.format(
        header=f"{variant.name}.h",
        invalid=_INVALID_VALUE,
        name=variant.name,
        declared_or_void=variant.declared(variant.passed) or "void",
        arguments="".join(f"{p.c_name}, " for p in variant.passed),
        constants=_declared(constants),
        grid=[f"({size})" for size in grid],
    )


def _declared(constants: dict[str, object]) -> str:
    """Integer constants of the kernel, by which a grid may be written."""
    known = {c_name(n): v for n, v in constants.items() if type(v) is int and abs(v) < 1 << 63}
    return "".join(
        f"  const int64_t {name} = {value};\n  (void){name};\n" for name, value in known.items()
    )


# The dispatcher


def dispatcher_header(name: str, algorithms: Sequence[Sequence[AheadVariant]]) -> str:
    """The header of all variants of a kernel."""
    first = algorithms[0][0]
    declared = first.declared(first.parameters)
    with_number = ", ".join(part for part in (declared, "int algo_id") if part)
    lines = ["#pragma once", *[f'#include "{v.name}.h"' for each in algorithms for v in each]]
    lines += ["", _PROLOGUE]
    lines += [
        f"int load_{name}(void);",
        f"int unload_{name}(void);",
        f"int {name}_get_num_algos(void);",
        *[f"/* {number}: {_remark(each[0])} */" for number, each in enumerate(algorithms)],
        f"int {name}({with_number});",
        f"int {name}_default({declared or 'void'});",
    ]
    return "\n".join(lines) + _EPILOGUE


def _remark(variant: AheadVariant) -> str:
    """An algorithm's constants and options, in a comment."""
    return ascii(variant.algorithm)[1:-1].replace("*/", "*\\/")


def dispatcher_source(name: str, header: str, algorithms: Sequence[Sequence[AheadVariant]]) -> str:
    """The source: each algorithm calls the first variant whose hints hold, those with most first;
    where none does the result is CUDA's error for an invalid value."""
    variants = [variant for each in algorithms for variant in each]
    first = variants[0]
    declared = first.declared(first.parameters)
    with_number = ", ".join(part for part in (declared, "int algo_id") if part)
    names = [p.c_name for p in first.parameters]
    given = ", ".join(names if first.target == "cpu" else ["stream", *names])
    lines = [f'#include "{header}"\n']
    for number, each in enumerate(algorithms):
        lines.append(f"static int proton_algo_{number}({declared or 'void'}) {{")
        lines += [_choice(variant) for variant in _most_hints_first(each)]
        lines.append(f"  return {_INVALID_VALUE};\n}}\n")
    cases = "".join(
        f"    case {n}: return proton_algo_{n}({given});\n" for n in range(len(algorithms))
    )
    calls = {
        verb: "".join(
            f"  if ((status = {verb}_{variant.name}())) return status;\n" for variant in variants
        )
        for verb in ("load", "unload")
    }
    for verb, text in calls.items():
        lines.append(f"int {verb}_{name}(void) {{\n  int status = 0;\n{text}  return status;\n}}\n")
    lines.append(f"int {name}_get_num_algos(void) {{ return {len(algorithms)}; }}\n")
    lines.append(
        f"int {name}({with_number}) {{\n  switch (algo_id) {{\n{cases}  }}\n"
        f"  return {_INVALID_VALUE};\n}}\n"
    )
    lines.append(f"int {name}_default({declared or 'void'}) {{ return proton_algo_0({given}); }}")
    return "\n".join(lines) + "\n"


def _most_hints_first(variants: Sequence[AheadVariant]) -> list[AheadVariant]:
    return sorted(variants, key=lambda variant: -sum(p.hint > 0 for p in variant.parameters))


def _choice(variant: AheadVariant) -> str:
    conditions = " && ".join(p.condition for p in variant.parameters if p.condition) or "1"
    names = [p.c_name for p in variant.passed]
    given = ", ".join(names if variant.target == "cpu" else ["stream", *names])
    return f"  if ({conditions}) return {variant.name}({given});"
