"""The commands of `proton-tile`, one a module; `proton.viewer.cli` finds them here."""
