"""From the bytes of a run to tables, statistics, traces and a command line."""

from proton.trace.errors import TraceFormatError as TraceFormatError
from proton.viewer.formats import FileFormat as FileFormat
from proton.viewer.run import Run as Run
from proton.viewer.tables import stats as stats
