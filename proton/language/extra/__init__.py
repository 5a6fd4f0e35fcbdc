"""What is there on some targets only: `tl.extra.libdevice`."""

from proton.language.extra import cuda as cuda
from proton.language.extra import libdevice as libdevice
