"""Is a text a valid label key, label value or namespace? apimachinery/pkg/api/validate/content/{kube,dns}.go.

The patterns are those of the schemas in deploy/crds, which cannot look ahead: a rule of theirs bounds the prefix.
"""

from __future__ import annotations

import re
from typing import Final

LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z"
QUALIFIED_NAME: Final = (
    r"^(?![^/]{254})([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
NAMESPACE: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"

_LABEL_VALUE, _QUALIFIED_NAME, _NAMESPACE = map(re.compile, (LABEL_VALUE, QUALIFIED_NAME, NAMESPACE))


def is_qualified_name(text: str) -> bool:
    """A name of at most 63 characters, with or without the name of a domain (at most 253) and a slash before it."""
    return _QUALIFIED_NAME.match(text) is not None


def is_label_value(text: str) -> bool:
    """Nothing, or a name of at most 63 characters."""
    return _LABEL_VALUE.match(text) is not None


def is_namespace(text: str) -> bool:
    """Whether a text can be the name of a namespace (an RFC 1123 label)."""
    return _NAMESPACE.match(text) is not None
