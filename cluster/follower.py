"""Tables of other components that follow the cluster like the scorer's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cluster.tables.changes import Change
from kube.decoding.decoding import ApiObject, Kind


class Follower(Protocol):
    """Called under the scorer's lock."""

    def apply(self, changes: Sequence[Change]) -> None:
        """What happened to nodes and pods, after the scorer's tables have followed."""

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """These are all objects of a kind that was attached."""

    def put(self, kind: Kind, item: ApiObject) -> None:
        """An object is new or has changed."""

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """An object is gone."""

    def rebuild(self) -> None:
        """Make anew what is made from nodes and pods: a change could not be followed."""


class NodesAndPodsOnly:
    """Base of followers that are attached for no kinds: objects of other kinds are nothing to them."""

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """Nothing."""

    def put(self, kind: Kind, item: ApiObject) -> None:
        """Nothing."""

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """Nothing."""
