"""Two sets of runs side by side: what got slower, how sure that is, and what a budget says.

A *process* is one run's file; what it measured of a scope is one number (its p50, say), however
many slices that is made of. Slices of one process are slow together, so processes are counted.
"""

from proton.viewer.compare.budget import Budget as Budget
from proton.viewer.compare.budget import Budgets as Budgets
from proton.viewer.compare.check import Report as Report
from proton.viewer.compare.check import Status as Status
from proton.viewer.compare.check import check as check
from proton.viewer.compare.diff import Change as Change
from proton.viewer.compare.diff import diff as diff
from proton.viewer.compare.samples import Side as Side
