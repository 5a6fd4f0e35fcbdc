"""Records of a profile: which are taken, where they are kept, how they leave."""
