"""What `requests --out` writes."""

from __future__ import annotations

from enum import Enum


class ManifestFormat(Enum):
    """How manifests are written: values of `--format`."""

    PATCHES = "patches"
    VPA = "vpa"
