"""OSMesa from a Python wheel, for machines whose system has no GL library (extra ``osmesa``).

The wheel ``lavavu-osmesa`` brings libOSMesa and the libraries it needs under names of its own, for which neither
MuJoCo nor PyOpenGL looks. They are loaded here in the order of their needs and shown to PyOpenGL under the usual name.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from embodied.errors import MissingExtraError, WorldError

_DISTRIBUTION = "lavavu-osmesa"
# Each library after those it needs.
_ORDER = ("libffi", "libtinfo", "libzstd", "libpcre2", "libselinux", "libdrm", "libLLVM", "libglapi", "libOSMesa")


def library_paths() -> list[Path]:
    """Return the wheel's libraries in the order in which they must be loaded.

    Raises:
      MissingExtraError: the wheel is not installed.
    """
    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        files = []
    libraries = [Path(str(f.locate())) for f in files if f.parent.name.endswith(".libs")]
    found = [p for name in _ORDER for p in libraries if p.name.startswith(name)]
    if not any(p.name.startswith("libOSMesa") for p in found):
        raise MissingExtraError(
            "OSMesa is wanted from a wheel, and lavavu-osmesa is not installed. "
            "Install it with: pip install 'embodied-stack[osmesa]'"
        )
    return found


def load() -> None:
    """Load OSMesa into this process; call it before PyOpenGL is imported for the first time.

    Raises:
      MissingExtraError: the wheel is not installed.
      WorldError: PyOpenGL is already bound to another library.
    """
    paths = library_paths()
    if "OpenGL.platform" in sys.modules:
        raise WorldError(
            "PyOpenGL is already loaded, so it cannot use OSMesa any more. "
            "Create the first camera of the route 'gl' before importing OpenGL."
        )
    for path in paths:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    mesa = str(paths[-1])

    class _Redirected(ctypes.CDLL):
        def __init__(self, name: str | None, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(mesa if name and "OSMesa" in name else name, *args, **kwargs)

    loader = ctypes.cdll
    before = loader._dlltype  # pyright: ignore[reportAttributeAccessIssue]
    loader._dlltype = _Redirected  # pyright: ignore[reportAttributeAccessIssue]
    try:
        import OpenGL.GL  # binds to the library now
        import OpenGL.osmesa  # noqa: F401
    finally:
        loader._dlltype = before  # pyright: ignore[reportAttributeAccessIssue]
