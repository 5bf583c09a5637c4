"""Numbers, words and names as C text. Names and words come from a file, so nothing in them may end a literal."""

from __future__ import annotations

import re

import numpy as np

from embodied.export.c_code.graph import UnsupportedGraphError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


def c_float(number: float | np.floating) -> str:
    """Write a float32 as a C literal that reads back as the same bits."""
    if not np.isfinite(number):
        return "NAN" if np.isnan(number) else ("INFINITY" if number > 0 else "-INFINITY")
    text = f"{float(np.float32(number)):.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def c_string(word: str) -> str:
    """Write a word as a C string literal; everything that could end it or start a trigraph becomes an octal escape."""
    plain = re.compile(r"[A-Za-z0-9 ._/+:=,()\[\]-]")
    bytes_ = word.encode("utf-8")
    return '"' + "".join(chr(b) if plain.fullmatch(chr(b)) else f"\\{b:03o}" for b in bytes_) + '"'


def c_comment(word: str) -> str:
    """Make a word fit for a comment."""
    return re.sub(r"[^A-Za-z0-9 ._+:=,()-]", "?", word)


def c_identifier(name: str) -> str:
    """Turn the name of a policy into the prefix of its C names.

    Raises:
      UnsupportedGraphError: it holds something else than letters, digits, ``-`` and ``_``, or starts with no letter.
    """
    if not _NAME.fullmatch(name):
        raise UnsupportedGraphError(
            f"Policy name {name!r} cannot prefix C names; expected a letter, then letters, digits, '-' and '_'."
        )
    return name.replace("-", "_").lower()


def c_macro(path: str) -> str:
    """Turn a channel path such as ``base_pos_world_m.x`` into the end of a macro name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", path).strip("_").upper()
