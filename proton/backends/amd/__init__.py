"""The AMD back end: from tile IR to assembly, with no GPU. Nothing launches it."""
