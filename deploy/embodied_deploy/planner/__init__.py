"""Compact planners on the device: words to tokens, memory to tokens, scores to a call. NumPy only."""
