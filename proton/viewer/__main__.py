"""`python -m proton.viewer` is `proton-viewer`."""

from proton.viewer.cli import main

main()
