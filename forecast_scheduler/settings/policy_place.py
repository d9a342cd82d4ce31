"""Where a policy document is, as people write it: a file, or configmap:NAMESPACE/NAME."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from base.errors import InputError

CONFIG_MAP: Final = "configmap:"

_NAMESPACE_AND_NAME: Final = re.compile(r"([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)")


def split_place(where: str) -> tuple[Path | None, str | None]:
    """The file, or what names the ConfigMap. Raises InputError where it is neither."""
    if where in ("", CONFIG_MAP):
        raise InputError(f"{where!r} names nothing: write a file, or {CONFIG_MAP}NAMESPACE/NAME")
    if where.startswith(CONFIG_MAP):
        return None, where.removeprefix(CONFIG_MAP)
    return Path(where), None


def namespace_and_name(config_map: str) -> tuple[str, str]:
    """Of NAMESPACE/NAME. Raises ValueError where it is none."""
    found = _NAMESPACE_AND_NAME.fullmatch(config_map)
    if found is None:
        raise ValueError("write NAMESPACE/NAME of a ConfigMap")
    return found[1], found[2]
