"""Libraries of the target, which kernels in Gluon may call."""

from proton.language.extra import libdevice as libdevice
