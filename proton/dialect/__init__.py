"""The dialects of Proton, and the one door to MLIR."""
