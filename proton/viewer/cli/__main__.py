"""`python -m proton.viewer.cli` is `proton-viewer`."""

from proton.viewer.cli import main

main()
