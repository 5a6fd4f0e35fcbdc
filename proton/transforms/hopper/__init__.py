"""What Hopper adds: tensor maps, TMA, fences between threads and the copy engine."""
