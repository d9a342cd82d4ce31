"""constraints.txt names every version that is installed, and nothing else decides about it."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]

# Ours, and what every virtual environment brings along.
_NOT_PINNED = {"forecast-scheduler", "pip", "setuptools"}


def pins() -> dict[str, str]:
    lines = [line.strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    found: dict[str, str] = {}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        pin = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+_-]+)(?: *;.*)?", line)
        assert pin, f"{line!r} is no exact version"
        name = str(canonicalize_name(pin[1]))
        assert name not in found, f"{name} is pinned twice"
        found[name] = pin[2]
    return found


def test_every_installed_package_is_pinned_to_the_version_that_is_installed() -> None:
    pinned = pins()
    installed = {str(canonicalize_name(one.metadata["Name"])): one.version for one in distributions()}
    wrong = {
        name: (version, pinned.get(name))
        for name, version in installed.items()
        if name not in _NOT_PINNED and pinned.get(name) != version
    }
    assert wrong == {}, "installed, and what constraints.txt says"
