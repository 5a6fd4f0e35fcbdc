"""Tables and statistics of a run, and what its things are called in every output."""

from proton.viewer.tables.stats import stats as stats
from proton.viewer.tables.summary import Summary as Summary
from proton.viewer.tables.summary import summary as summary
from proton.viewer.tables.tables import Tables as Tables
from proton.viewer.tables.tables import Totals as Totals
