"""`proton.mode`: instrumentation modes, as `triton.profiler.mode` has them."""

from proton._start_options import MMA as MMA
from proton._start_options import Default as Default
from proton._start_options import Mode as Mode
from proton._start_options import PCSampling as PCSampling
from proton._start_options import PeriodicFlushing as PeriodicFlushing
