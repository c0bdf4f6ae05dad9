"""Checks, benchmarks and result files (layer 5)."""
