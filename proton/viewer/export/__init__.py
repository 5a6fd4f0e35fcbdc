"""The formats that a run is written in, one a module; `proton.viewer.formats` finds them here."""
