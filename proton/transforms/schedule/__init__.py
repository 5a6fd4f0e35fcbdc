"""When a loop does what: copies ahead of their use, waits, warp groups in turns."""
