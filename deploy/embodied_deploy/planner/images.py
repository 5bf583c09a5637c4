"""Camera images at the size of the planner's graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.errors import ObservationError

IMAGE_HW = (120, 160)


def shrink(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return (120, 160, 3) uint8 means of the (120 k, 160 k, 3) pixels of a camera image.

    Raises:
      ObservationError: another shape or type.
    """
    rows, columns = IMAGE_HW
    factor = image.shape[0] // rows if image.ndim == 3 else 0
    if image.dtype != np.uint8 or factor < 1 or image.shape != (rows * factor, columns * factor, 3):
        raise ObservationError(
            f"The planner takes uint8 rgb images of {rows} x {columns} pixels or a whole multiple of that, "
            f"got {image.dtype} {image.shape}. Ask the camera for such a size."
        )
    if factor == 1:
        return image
    blocks = image.reshape(rows, factor, columns, factor, 3).astype(np.uint32).sum(axis=(1, 3))
    return ((blocks + factor * factor // 2) // (factor * factor)).astype(np.uint8)
