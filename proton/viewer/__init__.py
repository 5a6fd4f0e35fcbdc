"""From the bytes of a run to tables, statistics, traces and a command line."""

from proton.viewer.errors import TraceFormatError as TraceFormatError
from proton.viewer.formats import Format as Format
from proton.viewer.run import Run as Run
from proton.viewer.stats import stats as stats
