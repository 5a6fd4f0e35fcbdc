"""The commands of `proton-viewer`, one a module; `proton.viewer.cli` finds them here."""
