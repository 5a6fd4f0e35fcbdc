"""What NVIDIA's GPUs have; under the name that Triton has for it."""

from proton.language.extra import libdevice as libdevice
