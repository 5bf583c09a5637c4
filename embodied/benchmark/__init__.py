"""Benchmark: see the folder's README."""
