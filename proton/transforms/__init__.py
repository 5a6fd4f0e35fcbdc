"""Transforms: the same dialects in and out, one pass a file. A kernel comes by the rooms in this
order: `tile`, then `layout`, `schedule` and `hopper` on a GPU or `cpu`, then `records`."""
