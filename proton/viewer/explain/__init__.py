"""From a timeline to an answer: what costs time, what that rests on, and what to try.

`explain(tables)` asks every rule of `proton.viewer.explain.rules`.
"""

from proton.viewer.explain.explanation import Explanation as Explanation
from proton.viewer.explain.explanation import explain as explain
from proton.viewer.explain.finding import Finding as Finding
from proton.viewer.explain.finding import SliceToOpen as SliceToOpen
from proton.viewer.explain.finding import Unrecorded as Unrecorded
from proton.viewer.explain.rule import Rule as Rule
