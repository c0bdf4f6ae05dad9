"""Ways to spread one training step over ranks, one file a strategy."""
