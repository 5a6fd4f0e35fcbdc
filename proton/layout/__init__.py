"""Linear layouts: which thread holds which element, as linear maps of bits. Pure integers."""

from proton.layout.linear import LinearLayout as LinearLayout
from proton.layout.linear import NotDivisible as NotDivisible
