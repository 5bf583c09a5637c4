"""How the compiled kernels of the z-buffer are built, and the constants they share."""

from __future__ import annotations

import numba

# No assumption about infinities or NaN: both occur for rays parallel to a face.
jit = numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
NONE = 1e9  # depth of "nothing" inside the kernels
TINY = 1e-12
