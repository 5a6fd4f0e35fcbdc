"""Always on: a session that samples launches within a budget, writes runs to rotating files, and
tells percentiles by the minute."""

from proton.monitoring.monitor import Monitor as Monitor
from proton.monitoring.statistics import Snapshot as Snapshot
