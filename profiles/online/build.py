"""Builds the online profile: what all profiles share is all it has."""

from __future__ import annotations

from scheduler.handle import Handle, ProfileParts


def build(handle: Handle) -> ProfileParts:
    """Return no parts: the gap for pods of low priority (colocation_loop.py) runs in every profile."""
    return ProfileParts()
