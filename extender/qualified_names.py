"""Is a text a valid label key, label value or resource name? apimachinery/pkg/api/validate/content/{kube,dns}.go."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_label_value", "is_qualified_name"]

_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def is_qualified_name(text: str) -> bool:
    """A name of at most 63 characters, with or without the name of a domain and a slash before it."""
    prefix, slash, name = text.partition("/")
    if not slash:
        return _NAME.fullmatch(text) is not None
    return len(prefix) <= 253 and _PREFIX.fullmatch(prefix) is not None and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Nothing, or a name of at most 63 characters."""
    return not text or _NAME.fullmatch(text) is not None
