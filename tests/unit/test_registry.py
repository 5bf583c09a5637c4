"""Registries: lazy, versioned, duplicates refused, helpful when a name is wrong."""

from __future__ import annotations

import sys

import pytest

from embodied.errors import DuplicateNameError, MissingExtraError, UnknownNameError, require
from embodied.registry import Registry
from embodied.seeding import stream_rng, stream_seed


def make() -> Registry[object]:
    registry: Registry[object] = Registry("things")
    registry.add("a/one@1", "json:dumps", summary="first", tags=("x",))
    registry.add("a/one@2", "json:loads", summary="second")
    return registry


def test_newest_version_is_the_default():
    import json

    assert make().get("a/one") is json.loads
    assert make().get("a/one@1") is json.dumps


def test_duplicate_is_an_error():
    registry = make()
    with pytest.raises(DuplicateNameError, match="registered twice"):
        registry.add("a/one@1", "json:dumps", summary="again")


def test_unknown_name_says_the_nearest():
    with pytest.raises(UnknownNameError, match="a/one@1"):
        make().get("a/on@1")


def test_listing_imports_nothing():
    registry: Registry[object] = Registry("things")
    registry.add("lazy", "wave:open", summary="a module nobody imported")
    sys.modules.pop("wave", None)
    assert [e.name for e in registry] == ["lazy"]
    assert registry.names(tag="none") == ()
    assert "wave" not in sys.modules
    registry.get("lazy")
    assert "wave" in sys.modules


def test_missing_extra_names_the_install_line():
    with pytest.raises(MissingExtraError, match=r"pip install 'embodied-stack\[nothing\]'"):
        require("no_such_module_anywhere", "nothing")


def test_streams_do_not_depend_on_order():
    first = stream_seed(7, "layout", 3)
    stream_rng(7, "physics").random(10)
    assert stream_seed(7, "layout", 3) == first
    assert stream_seed(7, "layout", 4) != first
    assert stream_seed(8, "layout", 3) != first
