"""Requests as kube-scheduler v1.36.3 sent them, byte for byte: names- with nodeCacheCapable true, nodes- without."""

from __future__ import annotations

from pathlib import Path


def recorded(name: str) -> bytes:
    """Body of a request."""
    return (Path(__file__).with_name("recorded") / f"{name}.json").read_bytes()
