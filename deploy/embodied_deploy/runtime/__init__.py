"""Runs a policy on a device: a fixed-rate loop, degraded modes, health, slots, log. NumPy and the standard library."""
