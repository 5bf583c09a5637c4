"""Key pairs and signatures of packages (Ed25519). Devices only verify: ``embodied_deploy.package.signature``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from embodied.errors import EmbodiedError, require


class KeyFileError(EmbodiedError):
    """A key file cannot be read, or would be overwritten."""


class SigningKey:
    """A private key. Make one with :meth:`create`, keep it out of every repository, give devices the public file.

    Args:
      private: 32 bytes.

    Raises:
      MissingExtraError: ``cryptography`` is not installed.
    """

    def __init__(self, private: bytes) -> None:
        self._key: Any = _ed25519().Ed25519PrivateKey.from_private_bytes(private)

    @classmethod
    def create(cls) -> SigningKey:
        """Return a new key from the system's randomness."""
        key = _ed25519().Ed25519PrivateKey.generate()
        return cls(key.private_bytes_raw())

    @classmethod
    def read(cls, path: str | Path) -> SigningKey:
        """Return the key of a PEM file.

        Raises:
          KeyFileError: the file cannot be read or holds no unencrypted Ed25519 private key.
        """
        serialization = require("cryptography.hazmat.primitives.serialization", "export")
        try:
            key = serialization.load_pem_private_key(Path(path).read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise KeyFileError(
                f"{path}: no readable private key ({error}). Make one with SigningKey.create()."
            ) from None
        if not isinstance(key, _ed25519().Ed25519PrivateKey):
            raise KeyFileError(f"{path}: holds a {type(key).__name__}, expected an Ed25519 private key.")
        return cls(key.private_bytes_raw())

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the public key."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of the signature over ``message``; the same for the same message."""
        return self._key.sign(message)

    def write(self, path: str | Path) -> None:
        """Write the private key to ``path`` (PEM, readable by its owner only) and the public one beside it, ``.pub``.

        Raises:
          KeyFileError: one of the files exists: a lost key cannot be made again.
        """
        s = require("cryptography.hazmat.primitives.serialization", "export")
        private = self._key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        public = self._key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
        path = Path(path)
        for file, data, mode in ((path, private, 0o600), (path.with_suffix(".pub"), public, 0o644)):
            try:
                handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            except OSError as error:
                raise KeyFileError(f"{file}: not written ({error.strerror}). Choose another name.") from None
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)


def _ed25519() -> Any:  # noqa: ANN401 -- a module
    return require("cryptography.hazmat.primitives.asymmetric.ed25519", "export")
