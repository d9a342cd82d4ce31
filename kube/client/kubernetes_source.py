"""Objects from the API server into sinks, one thread per resource; the live cluster: nodes, pods and other kinds."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiClient

from kube.client.decoded_pods import DecodedPods
from kube.client.kubernetes_contract import Sink, Subscription, Timing, WatchStatus
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.decoding import SCORED_KINDS, WATCHED, ApiObject, Kind, watched
from kube.decoding.watched_kinds import Watched
from kube.objects.kubernetes_version import KubernetesVersion
from kube.objects.objects import PodInfo


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
