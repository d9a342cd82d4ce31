"""Pods that were decoded already: a list that is asked for again has most of them byte for byte.

A replica that begins to lead lists all pods anew, since its watch may lag, and so does one that takes a shard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from msgspec import Raw

from kube.decoding.decoding import ApiObject
from kube.decoding.watched_kinds import Watched
from kube.objects.objects import PodInfo

_FIRST_KEY: Final = b'"metadata":'
_LONGEST_PREFIX: Final = 64
"""Bytes within which the metadata begin: `kind` and `apiVersion`, which items of a list lack, come before them."""


class DecodedPods:
    """By the hash of a pod's JSON, 200 bytes for each. Called by the thread of the watch only."""

    def __init__(self) -> None:
        self._by_hash: dict[int, tuple[PodInfo, str]] = {}
        self._hash_of: dict[str, int] = {}  # by UID
        self._base: Watched[ApiObject] | None = None
        self._remembering: Watched[ApiObject] | None = None

    def __len__(self) -> int:
        return len(self._by_hash)

    def over(self, watched: Watched[ApiObject]) -> Watched[ApiObject]:
        """The same resource, of which what is decoded is remembered; the same value while `watched` is the same."""
        if self._remembering is None or watched is not self._base:
            self._by_hash.clear()
            self._hash_of.clear()
            self._base, self._remembering = watched, replace(watched, decode=self._decode)
        return self._remembering

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        if (known := self._hash_of.pop(uid, None)) is not None:
            self._by_hash.pop(known, None)

    def keep_only(self, uids: Iterable[str]) -> None:
        """All other pods are gone."""
        for uid in self._hash_of.keys() - set(uids):
            self.forget(uid)

    def _decode(self, body: bytes | Raw) -> tuple[ApiObject, str]:
        assert self._base is not None
        piece = bytes(body)
        start = piece.find(_FIRST_KEY, 0, _LONGEST_PREFIX)
        key = hash(piece[max(start, 0) :])
        if (seen := self._by_hash.get(key)) is not None and seen[0].uid.encode() in piece:
            return seen
        found = self._base.decode(body)
        pod, resource_version = found
        if isinstance(pod, PodInfo):
            self.forget(pod.uid)
            self._by_hash[key], self._hash_of[pod.uid] = (pod, resource_version), key
        return found
