"""`python -m proton.viewer.cli` is `proton-tile`."""

from proton.viewer.cli import main

main()
