"""The errors of scene descriptions."""

from __future__ import annotations


class SceneFileError(ValueError):
    """A scene description cannot be read; the message names the file, the key and the nearest right key."""
