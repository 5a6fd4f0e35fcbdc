"""When a loop does what: copies ahead of their use, waits, alternating warp groups."""
