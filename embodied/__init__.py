"""Benchmark embodied agents on one robot contract, from simulation to hardware.

Importing this package loads nothing heavy: engines, NumPy and clients are imported where they are used.
"""

from __future__ import annotations

__version__ = "0.1.0"
