"""`python -m proton.viewer` is `proton-tile`."""

from proton.viewer.cli import main

main()
