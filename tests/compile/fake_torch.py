"""A stand-in for torch that announces operators, by the functions of its library and its header."""

import contextlib
import ctypes
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HEADER = """
enum class C10_API_ENUM RecordScope : uint8_t {
  FUNCTION = 0,  // first
  BACKWARD_FUNCTION,
  /* between */ TORCHSCRIPT_FUNCTION,
  KERNEL_FUNCTION_DTYPE,
  USER_SCOPE,
  NUM_SCOPES, // last
};
typedef uint64_t CallbackHandle;
struct RecordFunction { const char* name() const; };
class TORCH_API RecordFunctionCallback {
 public:
  using StartCallback =
      std::unique_ptr<ObserverContext> (*)(const RecordFunction&);
  using EndCallback = void (*)(const RecordFunction&, ObserverContext*);
 private:
  StartCallback start_;
  EndCallback end_;
  double sampling_prob_ = 1.0;
  std::array<bool, static_cast<size_t>(RecordScope::NUM_SCOPES)> scopes_ = {};
  bool needs_inputs_ = false;
  bool needs_outputs_ = false;
  bool needs_ids_ = false;
};
TORCH_API CallbackHandle addGlobalCallback(RecordFunctionCallback cb);
TORCH_API void removeCallback(CallbackHandle handle);
"""
BEGIN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
END = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Function:
    """A function of the library, whose types somebody sets."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, argument: Any) -> Any:
        return self.function(argument)


class Torch(types.ModuleType):
    """The module, and in `library` what its library has."""

    dtype, Tensor = type("dtype", (), {}), type("Tensor", (), {})  # no argument is one

    def __init__(self, folder: Path, header: str = HEADER) -> None:
        super().__init__("torch")
        self.__version__, self.__file__ = "2.99", str(folder / "torch" / "__init__.py")
        place = folder / "torch" / "include" / "ATen" / "record_function.h"
        place.parent.mkdir(parents=True)
        place.write_text(header)
        self.callbacks: dict[int, Any] = {}
        self.names: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.library = types.SimpleNamespace()
        for name, function in {
            "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE": Function(self._add),
            "_ZN2at14removeCallbackEm": Function(self._remove),
            "_ZNK2at14RecordFunction4nameEv": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
                lambda address: ctypes.addressof(self.names[address])
            ),
        }.items():
            setattr(self.library, name, function)

    def _add(self, callback: Any) -> int:
        assert callback.sampling_prob == 1
        assert list(callback.scopes) == [True, True, True, False, True]
        assert not any(callback.needs)
        self.callbacks[7] = callback
        return 7

    def _remove(self, handle: int) -> None:
        del self.callbacks[handle]

    @contextlib.contextmanager
    def operator(self, name: str) -> Iterator[None]:
        """An operator of this name runs on this thread."""
        memory = ctypes.create_string_buffer(8)  # as a RecordFunction on the stack
        address, ending = ctypes.addressof(memory), list(self.callbacks.values())
        self.names[address] = ctypes.create_string_buffer(name.encode())
        for callback in ending:
            context = ctypes.c_void_p(1)
            BEGIN(callback.start)(ctypes.addressof(context), address)
            assert context.value is None
        try:
            yield
        finally:
            for callback in ending:
                END(callback.end)(address, None)
