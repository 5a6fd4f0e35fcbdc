"""A C program around a cubin, which calls CUDA's driver alone."""

import subprocess
from pathlib import Path

import numpy as np

from proton.runtime import driver
from tests.cpu.test_ahead_of_time import KERNEL, built, compiled, linked

PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "blend.h"

static void *driver;

static void *entry(const char *name) {
  void *found = dlsym(driver, name);
  if (!found) exit(2);
  return found;
}

static void check(int status) {
  if (status) {
    printf("error %d\\n", status);
    exit(1);
  }
}

int main(void) {
  static float x[200], y[100], out[104];
  if (!(driver = dlopen("libcuda.so.1", RTLD_NOW))) return 2;
  int (*init)(unsigned) = (int (*)(unsigned))entry("cuInit");
  int (*device_get)(int *, int) = (int (*)(int *, int))entry("cuDeviceGet");
  int (*retain)(void **, int) = (int (*)(void **, int))entry("cuDevicePrimaryCtxRetain");
  int (*set)(void *) = (int (*)(void *))entry("cuCtxSetCurrent");
  int (*alloc)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))entry("cuMemAlloc_v2");
  int (*to)(uint64_t, const void *, size_t) =
      (int (*)(uint64_t, const void *, size_t))entry("cuMemcpyHtoD_v2");
  int (*from)(void *, uint64_t, size_t) =
      (int (*)(void *, uint64_t, size_t))entry("cuMemcpyDtoH_v2");
  int device;
  void *context;
  uint64_t a, b, c;
  check(init(0));
  check(device_get(&device, 0));
  check(retain(&context, device));
  check(set(context));
  check(alloc(&a, sizeof x));
  check(alloc(&b, sizeof y));
  check(alloc(&c, sizeof out));
  for (int i = 0; i < 200; ++i) x[i] = i / 100.0f;
  for (int i = 0; i < 100; ++i) y[i] = (float)i;
  for (int i = 0; i < 104; ++i) out[i] = -1.0f;
  check(to(a, x, sizeof x));
  check(to(b, y, sizeof y));
  for (int stride = 1; stride < 3; ++stride) {
    check(to(c, out, sizeof out));
    check(load_blend());
    check(blend_default(NULL, a, b, c, 100, stride, 0.5f));
    static float found[104];
    check(from(found, c, sizeof found));
    for (int i = 0; i < 104; ++i) printf("%.9g ", found[i]);
    printf("\\n");
  }
  check(unload_blend());
  return 0;
}
"""


def test_a_c_program_runs_a_cubin(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNEL)
    target = str(driver.active.get_current_target())
    for hint in ("", ":1"):
        compiled(tmp_path, f"*fp32:16, *fp32, *fp32, i32, i32{hint}, fp32, 64", "-t", target)
    linked(tmp_path)
    program = built(tmp_path, PROGRAM)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    x = np.arange(200, dtype=np.float32) / np.float32(100)
    for stride, line in zip((1, 2), done.stdout.splitlines(), strict=True):
        found = np.array(line.split(), np.float64)
        expected = np.exp(x[: 100 * stride : stride]) * np.float32(0.5) + np.arange(100)
        np.testing.assert_allclose(found[:100], expected, rtol=1e-5)
        assert (found[100:] == -1).all()
