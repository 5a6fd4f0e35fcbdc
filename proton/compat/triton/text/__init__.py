"""IR as Triton prints it, read as ours.

`reader.module_of` goes over the text once. What MLIR has of its own (`arith`, `math`, `scf`, `cf`,
places in sources) stays as it is. Triton's ops are read by the table of their forms and written in
MLIR's generic form, its types and layouts as those of our dialects. A translation knows for each of
its places where in the file it comes from.
"""
