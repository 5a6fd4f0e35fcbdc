"""PC sampling of a GPU that is not there, by a stand-in for CUPTI: which launches are sampled, what
becomes of samples, and what CUPTI's errors say."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import pytest

import proton
from proton.base.errors import ProfileError
from proton.runtime.nvidia import cuda, hardware, pc_sampling
from proton.trace.instrumentation import SessionOptions
from tests.compile.test_gpu_sessions import ProfilingDriver, driver, kernels

__all__ = ["driver"]  # a fixture
PREFIX = "smsp__pcsamp_warps_issue_stalled_"
REASONS = ("smsp__pcsamp_sample_count", PREFIX + "wait", PREFIX + "wait_not_issued",
           PREFIX + "barrier")  # fmt: skip
CONTEXT, CRC = 0xC0, 77


class FakeCUPTI:
    """Gives `batches` of PCs for each range: (crc, function, offset, {reason: samples}), as many as
    its user's memory has room for; `fails` names a call, and its status."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.pcs: list[tuple[int, str, int, dict[int, int]]] = []
        self.fails: dict[str, int] = {}
        self.names: list[Any] = []
        self.says_so = True  # that the buffer is full, by its status
        self.settings: dict[int, int] = {}
        self.dropped = 0
        self.full: set[str] = set()  # calls behind which the hardware's buffer is full

    def __getattr__(self, name: str) -> Callable[..., int]:
        short = name.removeprefix("cuptiPCSampling")
        if short == name:
            raise AttributeError(name)

        def call(params: Any) -> int:
            self.calls.append(short)
            assert params[0] == ctypes.sizeof(params)
            assert params[2] == CONTEXT
            if short in self.fails:
                return self.fails[short]
            getattr(self, f"_{short}", lambda params: None)(params)
            if short in self.full:
                pc_sampling._Data.from_address(self.settings[8]).buffer_full = 1
            return 8 if short in self.full and self.says_so else 0

        return call

    def cuptiGetResultString(self, status: int, text: Any) -> None:
        text._obj.value = f"CUPTI_ERROR_{status}".encode()

    def cuptiGetCubinCrc(self, params: Any) -> None:
        assert ctypes.string_at(params[2], 4) == b"\x7fELF"
        params[3] = CRC

    def _GetNumStallReasons(self, params: Any) -> None:
        ctypes.c_size_t.from_address(params[3]).value = len(REASONS)

    def _GetStallReasons(self, params: Any) -> None:
        for number, reason in enumerate(REASONS):
            ctypes.c_uint32.from_address(params[4] + 4 * number).value = 10 + number
            place = ctypes.c_void_p.from_address(params[5] + 8 * number).value
            ctypes.memmove(place, reason.encode(), len(reason))

    def _SetConfigurationAttribute(self, params: Any) -> None:
        kinds = pc_sampling._Attribute * params[3]
        self.settings = {of.kind: of.value[0] for of in kinds.from_address(params[4])}

    def _Start(self, params: Any) -> None:
        self.left = list(self.pcs)

    def _Stop(self, params: Any) -> None:
        self._fill(self.settings[8])

    def _GetData(self, params: Any) -> None:
        self._fill(params[3])

    def _fill(self, address: int) -> None:
        data = pc_sampling._Data.from_address(address)
        some, self.left = self.left[: data.room], self.left[data.room :]
        data.count, data.remaining, data.dropped_samples = len(some), len(self.left), self.dropped
        for number, (crc, function, offset, reasons) in enumerate(some):
            pc, name = data.pcs[number], ctypes.create_string_buffer(function.encode())
            self.names.append(name)
            assert pc.size == ctypes.sizeof(pc) == 64
            pc.cubin_crc, pc.offset, pc.function_name = crc, offset, ctypes.addressof(name)
            pc.reason_count = len(reasons)
            for place, (reason, samples) in enumerate(reasons.items()):
                pc.reasons[place].index, pc.reasons[place].samples = reason, samples


@pytest.fixture
def cupti(driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch) -> FakeCUPTI:
    fake = FakeCUPTI()
    monkeypatch.setattr(pc_sampling, "_library", lambda: fake)
    monkeypatch.setattr(cuda, "context_of", lambda device: CONTEXT)
    return fake


def test_each_second_launch_is_sampled(driver: ProfilingDriver, cupti: FakeCUPTI) -> None:
    rounds, plain = kernels()
    x = driver.array("float32")
    cupti.pcs = [
        (CRC, "rounds$", 0x20, {10: 9, 11: 4, 12: 3}),
        (CRC, "rounds$", 0x30, {13: 1}),
        (CRC + 1, "memset", 0x20, {11: 100}),
    ]
    cupti.dropped = 2
    with proton.profile("run", pc_sampling=2048) as run:
        for _ in range(5):
            rounds[2,](x, 5)
        plain[2,](x, 5)
    assert (run.totals.launches, run.totals.dropped_launches) == (3 + 1, 0)
    assert cupti.calls.count("Start") == cupti.calls.count("Stop") == 2 + 1
    assert cupti.calls[-1] == "Disable"
    assert cupti.settings[1] == 11  # 2^11 cycles
    samples = {kernel.name: kernel.pc_samples for kernel in run.kernels}
    assert samples["rounds"].counts == {
        ("rounds$", 0x20, "wait"): 8,
        ("rounds$", 0x30, "barrier"): 2,
    }
    assert (samples["rounds"].launches, samples["rounds"].dropped) == (2, 4)
    assert samples["plain"].launches == 1
    assert run.kernels[1].code["ptx"]
    assert __file__.replace("pc_sampling", "gpu_sessions") in run.raw.sources


def test_code_that_ran_before_is_loaded_again(
    driver: ProfilingDriver, cupti: FakeCUPTI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUPTI knows no code that was loaded before it samples: its samples are foreign ones."""
    loads, load = [], cuda.load

    def log(*args: Any) -> int:
        loads.append((args[1], "Enable" in cupti.calls))
        return load(*args)

    monkeypatch.setattr(cuda, "load", log)
    rounds, plain = kernels()
    x = driver.array("float32")
    for kernel in (rounds, plain):
        kernel[2,](x, 5)
    assert loads == [("rounds$", False), ("plain$", False)]
    with proton.profile("run", pc_sampling=32):
        for _ in range(4):
            rounds[2,](x, 5)
            plain[2,](x, 5)
    assert {name for name, is_known in loads if is_known} == {"rounds$", "plain$"}
    assert len(loads) == 2 + 2 + 2  # with what runs in a session: the one records, the other not


def test_more_instructions_than_there_is_room_for(
    driver: ProfilingDriver, cupti: FakeCUPTI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pc_sampling, "MOST_PCS", 3)
    cupti.pcs = [(CRC, "plain$", 16 * number, {11: number + 1}) for number in range(8)]
    _, plain = kernels()
    with proton.profile("run", pc_sampling=32) as run:
        plain[2,](driver.array("float32"), 5)
    (kernel,) = run.kernels
    found = {offset: count for (_, offset, _), count in kernel.pc_samples.counts.items()}
    assert found == {16 * number: number + 1 for number in range(8)}


@pytest.mark.parametrize("says_so", [True, False])
@pytest.mark.parametrize("call", ["Stop", "GetData"])
def test_a_full_buffer_is_counted_and_the_program_goes_on(
    driver: ProfilingDriver, cupti: FakeCUPTI, call: str, says_so: bool
) -> None:
    """With and without CUPTI_ERROR_OUT_OF_MEMORY. PCs that it left in memory count once."""
    cupti.pcs, cupti.dropped = [(CRC, "rounds$", 0x20, {11: 4})], 2
    cupti.says_so, cupti.full = says_so, {call}
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("run", pc_sampling=32) as run:
        for number in range(6):
            if number == 4:
                cupti.full = set()
            rounds[2,](x, 5)
    (samples,) = [kernel.pc_samples for kernel in run.kernels]
    assert (samples.launches, samples.overflows, samples.dropped) == (3, 2, 6)
    lost = call == "Stop" and says_so
    assert samples.counts == {("rounds$", 0x20, "wait"): 4 if lost else 12}
    assert "2 of 3 launches filled the GPU's buffer" in str(run.loss_warnings())
    assert run.totals.launches == 3


def test_nobody_else_calls_the_driver_meanwhile(
    driver: ProfilingDriver, cupti: FakeCUPTI, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, _ = kernels()
    x, held = driver.array("float32"), []
    with proton.profile("run", pc_sampling=32):
        recorder = proton.runtime.session.session.recorder_of("cuda")
        monkeypatch.setattr(cupti, "_Stop", lambda params: held.append(
            all(device.ring.fetching.locked() for device in recorder.devices.values())
        ), raising=False)  # fmt: skip
        for _ in range(4):
            rounds[2,](x, 5)
    assert held == [True, True]


def test_a_launch_that_fails_ends_the_range(driver: ProfilingDriver, cupti: FakeCUPTI) -> None:
    sampling = pc_sampling.PCSampler(0, 32)
    counts = pc_sampling.Counts(b"\x7fELF")
    with pytest.raises(ZeroDivisionError):
        sampling.sample(lambda: 1 // 0, counts)
    assert cupti.calls[-1] == "Stop"
    assert not counts.launches
    assert not sampling.lock.locked()
    cupti.fails = {"Stop": 7}  # as it does where the launch broke the context
    with pytest.raises(ZeroDivisionError):
        sampling.sample(lambda: 1 // 0, counts)


def test_a_launch_behind_the_end_is_not_sampled(driver: ProfilingDriver, cupti: FakeCUPTI) -> None:
    """Another thread's, which was on its way when the session ended."""
    sampling = pc_sampling.PCSampler(0, 32)
    counts, launched = pc_sampling.Counts(b"\x7fELF"), []
    during: list[bool] = []

    def launch() -> None:
        end = threading.Thread(target=sampling.close)
        end.start()
        end.join(0.05)
        during.append("Disable" in cupti.calls)
        ends.append(end)

    ends: list[threading.Thread] = []
    sampling.sample(launch, counts)
    ends[0].join()
    assert during == [False]
    assert cupti.calls[-1] == "Disable"
    sampling.sample(lambda: launched.append(1), counts)
    assert (launched, counts.launches, cupti.calls[-1]) == ([1], 1, "Disable")


@pytest.mark.parametrize(
    ("call", "status", "words"),
    [
        ("Enable", 35, "NVreg_RestrictProfilingToAdminUsers"),
        ("Enable", 7, "Enable: CUPTI_ERROR_7"),
        ("SetConfigurationAttribute", 1, "SetConfigurationAttribute: CUPTI_ERROR_1"),
    ],
)
def test_what_cupti_refuses_is_said(
    driver: ProfilingDriver, cupti: FakeCUPTI, call: str, status: int, words: str
) -> None:
    cupti.fails = {call: status}
    with pytest.raises(ProfileError, match=words):
        pc_sampling.PCSampler(0, 32)
    assert (cupti.calls[-1] == "Disable") == (call != "Enable")


def test_counters_end_where_a_session_cannot_begin(
    driver: ProfilingDriver, cupti: FakeCUPTI, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = []

    class Counters:
        lost = 0

        def __init__(self, device: int, *_: object) -> None:
            self.device = device

        def stop(self) -> None:
            stopped.append(self.device)

    monkeypatch.setattr(hardware, "Sampler", Counters)
    monkeypatch.setattr(hardware, "check_counters", lambda: None)
    monkeypatch.setattr(cuda, "device_in_use", lambda: 0)
    cupti.fails = {"SetConfigurationAttribute": 7}
    with pytest.raises(ProfileError, match="CUPTI_ERROR_7"):
        proton.start("run", pc_sampling=32, counters="tensor")
    assert (stopped, cupti.calls[-1]) == ([0], "Disable")
    cupti.fails = {}
    proton.finalize(proton.start("run", pc_sampling=32))


@pytest.mark.parametrize("cycles", [1, 16, 33, 1000, 1 << 32, True, 64.0, -32])
def test_cycles_are_a_power_of_two(cycles: object) -> None:
    with pytest.raises(ProfileError, match="power of two from 32"):
        SessionOptions.of({"pc_sampling": cycles})


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ProfileError, match="ask for one of the two"):
        SessionOptions.of({"pc_sampling": 32, "compare_run_time": True})


def test_tritons_mode(driver: ProfilingDriver, cupti: FakeCUPTI) -> None:
    _, plain = kernels()
    with proton.profile("run", mode="pcsampling:interval=1000") as run:
        plain[2,](driver.array("float32"), 5)
    assert run.kernels[0].pc_samples.cycles == 1024
