"""Where clock samples are taken, and how they are kept."""
