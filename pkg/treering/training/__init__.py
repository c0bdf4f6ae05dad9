"""Training steps as programs over mesh axes (layer 4)."""
