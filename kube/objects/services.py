"""Services by number: which index a service has, and how many of its pods are there.

Bare pods and Jobs are services of one and come and go by the thousands, so indexes are used again: a service keeps its
index for a while after its last pod went (a Deployment at zero, a CronJob between runs), then the longest empty one
gives way to the next new service.
"""

from __future__ import annotations

from typing import Final

from forecast.service_key import ServiceKey

KEPT_EMPTY: Final = 1024
"""Services without pods that keep their index; as many as have pods, if those are more."""


class ServiceNumbers:
    """keys[i] and index_of[key] are inverse to each other. pods[i]: all pods; serving[i]: those that (will) serve."""

    def __init__(self) -> None:
        self.keys: list[ServiceKey] = []
        self.index_of: dict[ServiceKey, int] = {}
        self.pods: list[int] = []
        self.serving: list[int] = []
        self._empty: dict[int, None] = {}  # in the order in which they became empty
        self._changed: set[int] = set()

    def join(self, key: ServiceKey, *, serves: bool) -> tuple[int, bool]:
        """A pod joins: the index of its service, and whether that index now stands for another service than before."""
        index = self.index_of.get(key)
        is_new = index is None
        if index is None:
            index = self._take_index(key)
        if not self.pods[index]:
            self._empty.pop(index, None)
        self.pods[index] += 1
        self.serving[index] += serves
        self._changed.add(index)
        return index, is_new

    def leave(self, index: int, *, served: bool) -> None:
        self.pods[index] -= 1
        self.serving[index] -= served
        self._changed.add(index)
        if not self.pods[index]:
            self._empty[index] = None

    def turn(self, index: int, *, served: bool, serves: bool) -> None:
        """A pod stays, and serves from now on or no longer does."""
        if served or serves:
            self.serving[index] += serves - served
            self._changed.add(index)

    def mark_changed(self, key: ServiceKey) -> None:
        """Its replicas may be others now."""
        index = self.index_of.get(key)
        if index is not None:
            self._changed.add(index)

    def take_changed(self) -> set[int]:
        """Services whose replicas may have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def _take_index(self, key: ServiceKey) -> int:
        if len(self._empty) > max(KEPT_EMPTY, len(self.keys) - len(self._empty)):
            index = next(iter(self._empty))
            del self._empty[index], self.index_of[self.keys[index]]
            self.keys[index] = key
        else:
            index = len(self.keys)
            self.keys.append(key)
            self.pods.append(0)
            self.serving.append(0)
        self.index_of[key] = index
        return index
