"""Volumes, claims and what else decides where a pod with storage may go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scorer.cluster.decoding import ApiObject, Kind
from scorer.cluster.objects import PodInfo

__all__ = ["STORAGE_KINDS", "Storage"]

STORAGE_KINDS: Final[tuple[Kind, ...]] = ()


class Storage:
    """Objects by name, and pods that use claims."""

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """These are all objects of a kind."""

    def put(self, kind: Kind, item: ApiObject) -> None:
        """An object is new or has changed."""

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """An object is gone."""

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod with volumes sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
