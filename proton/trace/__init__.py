"""Reading a run: the wire format, the model, the archive, decoded records and their clocks."""
