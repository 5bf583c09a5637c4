"""Policy packages as plain C99 for microcontrollers: no heap, no library but ``math.h``."""

from __future__ import annotations

from embodied.export.c_code.emit import CSource, SourceError, UnsupportedGraphError, emit_c

__all__ = ["CSource", "SourceError", "UnsupportedGraphError", "emit_c"]
