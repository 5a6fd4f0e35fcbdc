"""PM sampling of one GPU: CUPTI's own sequence of calls, by the bindings of cupti-python.

    sampling = PMSampling(load(), device)
    sampling.open(metrics, interval_ns)      # enables it, configures it, makes the image
    sampling.start(); ...; sampling.stop()
    sampling.make_room(count)                # an image that has room for so many samples
    batch = sampling.decode()                # until one is empty
    sampling.close()

An image (CUPTI's counter data image) is where samples are decoded to. Those that it has no room for
are gone (on an H200 the next call gives nothing): one that has room for all is what loses nothing.
Whoever decodes goes on until a call gives nothing, whatever reason the one before had.

The package's class `Collector` is not used, for two reasons. It ends CUPTI's profiler for the whole
process when it is disabled, whoever else samples; here that is begun, and goes on until the process
ends. And CUPTI keeps the address of a configuration: what it was given last has to live until PM
sampling is disabled, also if that was refused. Here each object is configured once.
"""

import ctypes
import importlib
import importlib.metadata
import re
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proton.base.errors import ProfileError

INSTALL = "pip install 'proton-tile[cupti]'"
PERMISSION = (
    "the driver keeps performance counters to administrators (ERR_NVGPUCTRPERM): run as root or "
    "with the capability SYS_ADMIN, or have the driver's module loaded with "
    "NVreg_RestrictProfilingToAdminUsers=0"
)
BUFFER_BYTES = 512 << 20  # of the GPU's samples, which CUPTI decodes at the end
# Of the image, at most. A sample takes 7 to 16 KiB on an H200, so that is 130,000 to 300,000.
IMAGE_BYTES = 2 << 30
# What CUPTI's errors mean, by the call and by the error's name.
_MEANINGS = {
    ("pm_sampling_enable", "INVALID_OPERATION"): "somebody samples it already: another session, "
    "or a tool such as Nsight Systems",
    ("pm_sampling_set_config", "NOT_SUPPORTED"): "not in one pass, or not at times on this GPU",
    ("pm_sampling_decode_data", "OUT_OF_MEMORY"): "its buffer for samples overflowed; ask for a "
    "longer counter_interval_ns",
    ("profiler_initialize", "NOT_INITIALIZED"): "libnvperf_host.so and libnvperf_target.so are "
    "not found; have the folder of libcupti.so in LD_LIBRARY_PATH",
}

Sample = tuple[int, int, list[float]]  # begin, end, and a value of each metric


@dataclass(frozen=True)
class SampleBatch:
    """What one call decoded. `count` has those samples, too, of which CUPTI does not know the begin
    or the end: the first and the last of all. `overflow`: the GPU's buffer was full."""

    samples: list[Sample]
    count: int
    overflow: bool


@dataclass(frozen=True)
class Cupti:
    """The modules of the package."""

    base: types.ModuleType
    host: types.ModuleType

    def call(self, name: str, **fields: object) -> Any:
        """Calls a function of CUPTI that takes a structure, and gives that back."""
        kind = "".join(word.title() for word in name.split("_"))
        params = getattr(self.base, f"{kind}Params")()
        params.struct_size = getattr(self.base, f"{name.upper()}_PARAMS_STRUCT_SIZE")
        for field, value in fields.items():
            setattr(params, field, value)
        try:
            getattr(self.base, name)(params.ptr)
        except Exception as error:  # the package's own, whose kind depends on its version
            for (call, said), meaning in _MEANINGS.items():
                if call == name and said in str(error):
                    raise RuntimeError(f"{meaning} ({error})") from None
            raise
        return params


def load() -> Cupti:
    """The package; raises ProfileError where it is not there."""
    try:
        names = ("cupti.cupti", "cupti.profiler_host")
        return Cupti(*(importlib.import_module(name) for name in names))
    except (ImportError, OSError, RuntimeError) as error:
        raise ProfileError(
            f"counters need CUPTI from the package cupti-python 13.4 or later: {INSTALL} ({error})"
        ) from None


class PMSampling:
    """PM sampling of a GPU. What CUPTI refuses is an exception of the package, or says what it
    means; `explained` makes a ProfileError of both."""

    def __init__(self, cupti: Cupti, device: int) -> None:
        self.cupti, self.device, self.object = cupti, device, 0
        self.metrics: list[str] = []
        cupti.call("profiler_initialize")  # once is enough, and more often does no harm
        self.chip = cupti.call("device_get_chip_name", device_index=device).p_chip_name

    def check(self, metrics: Sequence[str]) -> None:
        """Raises an exception where no single pass has these metrics on such a GPU."""
        passes = self.cupti.host.get_num_of_passes(self._configuration(metrics))
        if passes != 1:
            raise ValueError(f"that takes {passes} passes, and sampling has one")

    def open(self, metrics: Sequence[str], interval_ns: int) -> None:
        """Enables the sampling of metrics. If that fails nothing is to be closed."""
        call, base = self.cupti.call, self.cupti.base
        self.metrics = list(metrics)
        self.object = call("pm_sampling_enable", device_index=self.device).p_pm_sampling_object
        try:
            self.configuration = self._configuration(metrics)  # CUPTI keeps its address
            call(
                "pm_sampling_set_config",
                p_pm_sampling_object=self.object,
                config_size=len(self.configuration),
                p_config=self.configuration.ctypes.data,
                hardware_buffer_size=BUFFER_BYTES,
                sampling_interval=interval_ns,
                trigger_mode=base.PmSamplingTriggerMode.GPU_TIME_INTERVAL,
                hw_buffer_append_mode=base.PmSamplingHardwareBufferAppendMode.KEEP_OLDEST,
            )
            self.evaluator = self._new_host()
        except BaseException:
            self._disable()
            raise

    def start(self) -> None:
        self.cupti.call("pm_sampling_start", p_pm_sampling_object=self.object)

    def stop(self) -> None:
        self.cupti.call("pm_sampling_stop", p_pm_sampling_object=self.object)

    def make_room(self, count: int) -> None:
        """Makes an image for so many samples, or for as many as IMAGE_BYTES hold."""
        size = self._image_bytes(count)
        if size > IMAGE_BYTES:
            size = self._image_bytes(max(1, count * IMAGE_BYTES // size))
        self.image = np.zeros(size, np.uint8)

    def decode(self) -> SampleBatch:
        """The next samples."""
        self._clear_image()
        decoded = self.cupti.call(
            "pm_sampling_decode_data", p_pm_sampling_object=self.object, **self._image_fields
        )
        found = [self._sample(number) for number in range(self._completed())]
        known = [sample for sample in found if 0 < sample[0] <= sample[1]]
        return SampleBatch(known, len(found), bool(decoded.overflow))

    def close(self) -> None:
        """Ends the sampling of this GPU."""
        self.evaluator.deinitialize()
        self._disable()

    def _disable(self) -> None:
        self.cupti.call("pm_sampling_disable", p_pm_sampling_object=self.object)
        self.object = 0

    def _new_host(self) -> Any:
        """The object with the metrics of the chip."""
        host = self.cupti.host
        found = host.ProfilerHost(self.chip, host.ProfilerType.PM_SAMPLING)
        found.initialize()
        return found

    def _configuration(self, metrics: Sequence[str]) -> np.ndarray:
        host = self._new_host()
        try:
            image: np.ndarray = host.create_config_image(metrics=list(metrics))
        finally:
            host.deinitialize()
        return image

    def _image_bytes(self, count: int) -> int:
        names = (ctypes.c_char_p * len(self.metrics))(*(name.encode() for name in self.metrics))
        params = self.cupti.call(
            "pm_sampling_get_counter_data_size",
            p_pm_sampling_object=self.object,
            p_metric_names=ctypes.addressof(names),
            num_metrics=len(self.metrics),
            max_samples=count,
        )
        return int(params.counter_data_size)

    @property
    def _image_fields(self) -> dict[str, int]:
        return {
            "p_counter_data_image": self.image.ctypes.data,
            "counter_data_image_size": len(self.image),
        }

    def _clear_image(self) -> None:
        self.cupti.call(
            "pm_sampling_counter_data_image_initialize",
            p_pm_sampling_object=self.object,
            counter_data_size=len(self.image),
            p_counter_data=self.image.ctypes.data,
        )

    def _completed(self) -> int:
        info = self.cupti.call("pm_sampling_get_counter_data_info", **self._image_fields)
        return int(info.num_completed_samples)

    def _sample(self, number: int) -> Sample:
        info = self.cupti.call(
            "pm_sampling_counter_data_get_sample_info",
            p_pm_sampling_object=self.object,
            sample_index=number,
            **self._image_fields,
        )
        values = self.evaluator.evaluate_metric_values(
            counter_data_image=self.image, metrics=self.metrics, index=number
        )
        return int(info.start_timestamp), int(info.end_timestamp), values.tolist()


def is_permission(error: Exception) -> bool:
    """True if the driver's permission is what lacks."""
    return isinstance(error, PermissionError) or "INSUFFICIENT_PRIVILEGES" in str(error)


@contextmanager
def explained(device: int) -> Iterator[None]:
    """What the package raises, as a ProfileError that says what to do."""
    try:
        yield
    except ProfileError:
        raise
    except Exception as error:  # of the package, whose kind depends on its version
        if is_permission(error):
            raise ProfileError(f"counters: {PERMISSION}") from None
        raise ProfileError(
            f"counters: CUPTI cannot sample GPU {device}: {error}{of_other_release()}"
        ) from None


def of_other_release() -> str:
    """Says so where the library that was loaded is older than the package, else nothing: one that
    is refuses structures of the other."""
    package = re.match(r"(\d+)\.(\d+)", _package_version())
    path = loaded_library()
    version = _version_of(path) if path is not None else None
    if package is None or version is None:
        return ""
    library = divmod(version // 100, 100) if version >= 10_000 else (12, 0)  # 12.9 says 28
    if library >= tuple(map(int, package.groups())):
        return ""
    release = ".".join(package.groups())
    return (
        f". The process loaded {path} (cuptiGetVersion says {version}), which is older than the "
        f"package cupti-python {release}: pip install 'nvidia-cuda-cupti=={release}.*'; where "
        "another package, such as torch, loads its own first, have that one's libcupti.so.13 in "
        "LD_PRELOAD"
    )


def _package_version() -> str:
    try:
        return importlib.metadata.version("cupti-python")
    except importlib.metadata.PackageNotFoundError:
        return ""


def loaded_library() -> Path | None:
    """Where the CUPTI lies that this process loaded first; None if it loaded none."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    found = re.search(r"(/\S*/libcupti\.so\S*)$", maps, re.MULTILINE)
    return Path(found[1]) if found is not None else None


def _version_of(library: Path) -> int | None:
    """What a CUPTI says of itself; None if it says nothing."""
    version = ctypes.c_uint32()
    try:
        ctypes.CDLL(str(library)).cuptiGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return version.value
