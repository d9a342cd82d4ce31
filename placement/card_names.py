"""Which cards a type means: a name matches whole words of what a node's label says, whatever their case.

NVIDIA-A100-SXM4-80GB is of the types A100, a100-sxm4 and 80GB, and not of the type A10.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

TYPE_LABELS: Final = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
"""Labels of NVIDIA's GPU feature discovery and AMD's node labeller."""

_BETWEEN_WORDS: Final = re.compile(r"[^a-z0-9]+")


def of_any_type(types: Iterable[str]) -> Callable[[str], bool]:
    """Return a function of a label's value: whether the card is of one of these types. Without types it never is."""
    wanted = tuple(words for words in map(_words, types) if words.strip())

    def matches(value: str) -> bool:
        words = _words(value)
        return any(one in words for one in wanted)

    return matches


def listed(names: Sequence[str], *, most: int = 5) -> str:
    """Types, for people. A pod may name thousands, and a reason goes into an event."""
    shown = [name[:63] for name in names[:most]]
    return " or ".join(shown) + (" or others" if len(names) > most else "")


def _words(text: str) -> str:
    """NVIDIA-A100-SXM4-80GB -> ' nvidia a100 sxm4 80gb ', so that A10 is not found in it but A100 and SXM4-80GB are."""
    return f" {_BETWEEN_WORDS.sub(' ', text.lower()).strip()} "
