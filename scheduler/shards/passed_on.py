"""What replicas write into a waiting pod that they found no room for: who is to try it next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

PASSED_ON: Final = f"{ANNOTATION_PREFIX}passed-on"
"""Annotation of a waiting pod: how many replicas have tried it in vain, and behind @ the shard that is to try now."""

_MOST_TRIES: Final = 1_000


@dataclass(frozen=True, slots=True)
class PassedOn:
    """tries: of replicas, in vain; shard: whose owner tries it now, -1 = whose turn it is"""

    tries: int = 0
    shard: int = -1

    @property
    def text(self) -> str:
        """Return the value of the annotation."""
        return str(self.tries) if self.shard < 0 else f"{self.tries}@{self.shard}"


def passed_on(pod: PodInfo) -> PassedOn:
    """Return what the pod says; a text that cannot be read says nothing."""
    return read_passed_on(pod.annotations.get(PASSED_ON, ""))


def read_passed_on(text: str) -> PassedOn:
    """Return what the annotation says, '' = there is none."""
    if not text or len(text) > 12 or not text.isascii():
        return PassedOn()
    tries, _, shard = text.partition("@")
    if not tries.isdigit() or not (shard.isdigit() or not shard):
        return PassedOn()
    return PassedOn(min(int(tries), _MOST_TRIES), int(shard) if shard else -1)
