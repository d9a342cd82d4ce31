"""Objects from the API server into sinks, one thread per resource; the live cluster: nodes, pods and other kinds. A
pod that comes again byte for byte is not decoded again.

A replica that begins to lead lists all pods anew, since its watch may lag, and so does one that takes a shard.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubernetes.client import ApiClient
from msgspec import Raw

from kube.client.kubernetes_contract import Sink, Subscription, Timing, WatchStatus
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.decoding import SCORED_KINDS, WATCHED, ApiObject, Kind, watched
from kube.decoding.watched_kinds import Watched
from kube.objects.kubernetes_version import KubernetesVersion
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


class ResourceSource:
    """List and watch, resumed after disconnects, restarts of the API server and forgotten history.

    Each resource is replaced by complete lists and changed event by event in the server's order; between resources
    there is no order: a pod may come before its node or its ReplicaSet.
    """

    def __init__(self, watchers: Iterable[ResourceWatcher[Any]]) -> None:
        self._watchers = tuple(watchers)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to list. Once only: make a new source to start over."""
        if self._threads:
            raise RuntimeError("this source has been started already")
        self._threads = [
            threading.Thread(target=watcher.run, name=f"watch-{watcher.watched.plural}", daemon=True)
            for watcher in self._watchers
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End all threads; one that is just connecting is left behind as a daemon after `timeout` seconds."""
        for watcher in self._watchers:
            watcher.stop()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def synced(self) -> bool:
        """Whether a complete list of everything has been applied; it stays true from then on."""
        return all(watcher.synced.is_set() for watcher in self._watchers)

    def wait_synced(self, timeout: float) -> bool:
        """Wait until `synced`, at most `timeout` seconds; returns it."""
        deadline = time.monotonic() + timeout
        return all(watcher.synced.wait(max(0.0, deadline - time.monotonic())) for watcher in self._watchers)

    def list_again(self, plurals: Collection[str]) -> Callable[[], bool]:
        """List these resources now, whatever the state of their watches.

        Returns a function that says whether lists that began after this moment have been applied. Such lists are
        consistent: they hold every object written before.
        """
        done = [watcher.list_again() for watcher in self._watchers if watcher.watched.plural in plurals]
        return lambda: all(one() for one in done)

    def statuses(self) -> dict[str, WatchStatus]:
        """How the watch of each resource is doing, by plural name; of a second one of that name with its API group."""
        found: dict[str, WatchStatus] = {}
        for watcher in self._watchers:
            plural, group = watcher.watched.plural, watcher.watched.group
            found[plural if plural not in found else f"{plural}.{group}"] = watcher.status()
        return found


def source_of(api: ApiClient, subscriptions: Iterable[Subscription[Any]]) -> ResourceSource:
    """A source, not started yet, that follows these resources on the API server."""
    return ResourceSource([ResourceWatcher(api, one.sink, one.watched) for one in subscriptions])


@dataclass(frozen=True, slots=True)
class _OfKind:
    """The part of a sink that one kind goes to."""

    sink: Sink
    kind: Kind

    def replace(self, objects: Sequence[ApiObject]) -> None:
        self.sink.replace(self.kind, objects)

    def put(self, obj: ApiObject) -> None:
        self.sink.put(self.kind, obj)

    def delete(self, obj: ApiObject) -> None:
        self.sink.delete(self.kind, obj)


@dataclass(frozen=True, slots=True)
class _Pods(_OfKind):
    """The same for pods, of which those that are gone need not be remembered."""

    seen: DecodedPods

    def replace(self, objects: Sequence[ApiObject]) -> None:
        self.seen.keep_only(one.uid for one in objects if isinstance(one, PodInfo))
        self.sink.replace(self.kind, objects)

    def delete(self, obj: ApiObject) -> None:
        if isinstance(obj, PodInfo):
            self.seen.forget(obj.uid)
        self.sink.delete(self.kind, obj)


class KubernetesSource(ResourceSource):
    """The kinds that schedulers know, into one sink.

    page_size : objects per page of a list
    clock     : unix seconds
    rng       : for the pauses and the lengths of streams
    version   : whose rules pods are read by, asked again with each list and stream of them; None = the newest
    is_known  : quick; whether an event of a pod says nothing new, by its line of the watch
    """

    def __init__(
        self,
        api_client: ApiClient,
        sink: Sink,
        *,
        kinds: Iterable[Kind] = SCORED_KINDS,
        page_size: int = 500,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        version: Callable[[], KubernetesVersion] | None = None,
        is_known: Callable[[bytes], bool] = lambda line: False,
    ) -> None:
        seeds, seen = rng or random.Random(), DecodedPods()
        self._kinds = tuple(kinds)

        def watched_pods() -> Watched[ApiObject]:
            return seen.over(WATCHED[Kind.PODS] if version is None else watched(Kind.PODS, version()))

        super().__init__(
            ResourceWatcher(
                api_client,
                _Pods(sink, kind, seen) if kind is Kind.PODS else _OfKind(sink, kind),
                WATCHED[kind],
                page_size=page_size,
                timing=timing,
                clock=clock,
                rng=random.Random(seeds.getrandbits(64)),
                # What is decoded of the other kinds is the same in all versions.
                refresh=watched_pods if kind is Kind.PODS else None,
                is_known=is_known if kind is Kind.PODS else lambda line: False,
            )
            for kind in self._kinds
        )

    def status(self) -> dict[Kind, WatchStatus]:
        """How the watch of each kind is doing."""
        statuses = self.statuses()
        return {kind: statuses[kind.value] for kind in self._kinds}
