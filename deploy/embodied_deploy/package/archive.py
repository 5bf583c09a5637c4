"""Zip files whose bytes depend on nothing but their content: stored entries, sorted names, no time stamps.

Written by hand and not with ``zipfile``, whose output differs between versions of Python. Any zip tool can read the
result; :func:`unpack` reads only what :func:`pack` writes, so that no byte of a file can change unnoticed.
"""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from embodied_deploy.errors import PackageError

# APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16; the date is 1980-01-01, the first that the format knows.
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_DATE = 33
_VERSION = 20
_MODE = 0o644 << 16
MAX_BYTES = 1 << 30
"""Larger files are refused before they are read."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return the archive of ``files``, the same bytes for the same content on every machine."""
    body, directory = bytearray(), bytearray()
    for name in sorted(files):
        data, encoded = files[name], name.encode("ascii")
        sizes = (zlib.crc32(data), len(data), len(data), len(encoded))
        offset = len(body)
        body += _LOCAL.pack(b"PK\x03\x04", _VERSION, 0, 0, 0, _DATE, *sizes, 0) + encoded + data
        central = (_VERSION, _VERSION, 0, 0, 0, _DATE, *sizes, 0, 0, 0, 0, _MODE, offset)
        directory += _CENTRAL.pack(b"PK\x01\x02", *central) + encoded
    count = len(files)
    return bytes(body + directory + _END.pack(b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0))


def unpack(data: bytes, what: str) -> dict[str, bytes]:
    """Return the files of an archive. Sums are not compared here: see :func:`require_canonical`.

    Args:
      data: a whole archive.
      what: its name, for the message.

    Raises:
      PackageError: ``torn``: cut short, grown, or of another kind.
    """
    try:
        return _entries(data)
    except (struct.error, ValueError, IndexError) as error:
        raise PackageError(
            "torn", f"{what}: {len(data)} bytes that are not one whole archive ({error}). Copy or export it again."
        ) from None


def require_canonical(data: bytes, files: Mapping[str, bytes], what: str) -> None:
    """Refuse an archive that differs anywhere from what :func:`pack` makes of its files.

    Raises:
      PackageError: ``torn``.
    """
    if pack(files) != data:
        raise PackageError(
            "torn",
            f"{what}: the frame around its files is not the one that packages are written with: a byte was changed, or "
            "another tool repacked it. Copy or export it again.",
        )


def read_file(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
      PackageError: ``torn``: there is none, or it is too large to be a package.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            # A pipe or a device may never end.
            raise PackageError("torn", f"{path}: a folder, pipe or device, expected a file. Name the package itself.")
        size = status.st_size
        if size > MAX_BYTES:
            raise PackageError("torn", f"{path}: {size} bytes, expected at most {MAX_BYTES}. Is this a package?")
        return path.read_bytes()
    except OSError as error:
        raise PackageError("torn", f"{path}: cannot be read ({error.strerror}). Check path and rights.") from None


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` so that a reader sees the old file or the whole new one, also after a power cut.

    Raises:
      OSError: it cannot be written; names ``path``.
    """
    try:
        _replace(path, data)
    except OSError as error:
        # Of the disk it says nothing, of a rename the name that nobody knows.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _entries(data: bytes) -> dict[str, bytes]:
    start = len(data) - _END.size
    if start < 0:
        raise ValueError("too short")
    mark, _, _, _, count, _, position, _ = _END.unpack_from(data, start)
    if mark != b"PK\x05\x06":
        raise ValueError("no end record")
    files: dict[str, bytes] = {}
    for _ in range(count):
        mark, _, _, _, method, _, _, _, _, size, n, extra, comment, *_, offset = _CENTRAL.unpack_from(data, position)
        name = data[position + _CENTRAL.size : position + _CENTRAL.size + n].decode("ascii")
        if mark != b"PK\x01\x02" or method != 0 or name in files:
            raise ValueError("broken directory")
        local = _LOCAL.unpack_from(data, offset)
        begin = offset + _LOCAL.size + local[-2] + local[-1]
        if local[0] != b"PK\x03\x04" or begin + size > len(data):
            raise ValueError(f"{name} does not lie inside the file")
        files[name] = data[begin : begin + size]
        position += _CENTRAL.size + n + extra + comment
    return files
