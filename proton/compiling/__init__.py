"""What is around a compilation: the cache on disk, compiling ahead, hooks, and sources in files."""
