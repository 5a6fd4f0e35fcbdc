"""What stands for other projects' names. It uses what the rest offers to every program, nothing of
the rest imports it, and an install without this folder compiles and profiles all the same."""
