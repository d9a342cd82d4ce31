"""Templates, bindings and namespaces as the API server has them, made into one TemplateSet that is swapped in whole.

    watches -> what is stored --changed--> a thread makes a new set, every 0.2 s at most --> `templates`

A reader of `templates` holds a set that does not change. Changes of a status alone make no new set.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from kubernetes.client import ApiClient

from admission.templates.template_decoding import BINDINGS, NODE_CONFIGS, POD_CONFIGS
from admission.templates.template_objects import NodeSchedulerConfig, PodSchedulerConfig, SchedulerConfigBinding
from admission.templates.template_set import TemplateSet
from base.backoff import Backoff
from kube.client.kubernetes_contract import Timing
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.decoding import WATCHED, ApiObject, Kind
from kube.decoding.stored_templates import Stored, stored
from kube.objects.objects import NamespaceInfo

logger = logging.getLogger(__name__)

T = TypeVar("T")

WEBHOOK_TIMING = Timing(backoff=Backoff(longest=5.0))
"""A definition that is installed again, or an API server that is back, is noticed within seconds."""

_REBUILD_SECONDS = 0.2
_FIRST_LOOK_SECONDS = 0.02


class StoredObjects(Generic[T]):
    """The objects of one resource by name. Implements ResourceSink; written by one thread, read by any."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """changed: called after what an object says has changed, not for statuses."""
        self._changed = changed
        self._objects: dict[str, Stored[T]] = {}

    def replace(self, objects: Sequence[Stored[T]]) -> None:
        before, self._objects = self._objects, {one.name: one for one in objects}
        if before.keys() != self._objects.keys() or any(
            not one.says_the_same(before.get(name)) for name, one in self._objects.items()
        ):
            self._changed()

    def put(self, obj: Stored[T]) -> None:
        """One is new or has changed."""
        before = self._objects.get(obj.name)
        self._objects[obj.name] = obj
        if not obj.says_the_same(before):
            self._changed()

    def delete(self, obj: Stored[T]) -> None:
        if self._objects.pop(obj.name, None) is not None:
            self._changed()

    def all(self) -> tuple[Stored[T], ...]:
        """As they are now."""
        return tuple(self._objects.copy().values())  # copying a dict is one step: no other thread comes between

    def readable(self) -> list[T]:
        """Those that can be read."""
        return [one.object for one in self.all() if one.object is not None]


class WatchedNamespaces:
    """Labels of namespaces. Implements ResourceSink."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}

    def replace(self, objects: Sequence[ApiObject]) -> None:
        self._labels = {one.name: one.labels for one in cast(Sequence[NamespaceInfo], objects)}

    def put(self, obj: ApiObject) -> None:
        """One is new or has changed."""
        one = cast(NamespaceInfo, obj)
        self._labels[one.name] = one.labels

    def delete(self, obj: ApiObject) -> None:
        self._labels.pop(cast(NamespaceInfo, obj).name, None)

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """None: not known (yet)."""
        return self._labels.get(namespace)


class TemplateStore:
    """What the webhook goes by. `start` and `stop` are for its thread; `rebuild` may be called without it."""

    def __init__(self) -> None:
        self._changed, self._stopping = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self.node_configs: StoredObjects[NodeSchedulerConfig] = StoredObjects(self._changed.set)
        self.pod_configs: StoredObjects[PodSchedulerConfig] = StoredObjects(self._changed.set)
        self.bindings: StoredObjects[SchedulerConfigBinding] = StoredObjects(self._changed.set)
        self.namespaces = WatchedNamespaces()
        self.templates = TemplateSet.of((), (), ())
        self.ready = False
        self._synced: Callable[[], bool] = lambda: True
        self._settled: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="template-store", daemon=True)

    def follow(self, synced: Callable[[], bool], settled: Callable[[], None] = lambda: None) -> None:
        """
        synced  : whether everything has been listed; `ready` once it was, and a set was made of it
        settled : called by the thread from then on, after each set
        """
        self._synced, self._settled = synced, settled

    def start(self) -> None:
        """Make a new set soon after each change."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def rebuild(self) -> None:
        """Make a new set of what is stored now. After a mistake of ours the last one stays, and the log says so."""
        with self._lock:
            self._changed.clear()
            try:
                self.templates = TemplateSet.of(
                    self.node_configs.readable(),
                    self.pod_configs.readable(),
                    self.bindings.readable(),
                    before=self.templates,
                )
            except Exception:
                logger.exception("templates and bindings could not be put in effect, those before stay")

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._changed.wait(None if self.ready else _FIRST_LOOK_SECONDS)
            synced = self._synced()  # first: what was listed until then is in the set made next
            if self._changed.is_set() and not self._stopping.is_set():
                self.rebuild()
            if synced:
                self._settled()
                self.ready = True
            self._stopping.wait(_REBUILD_SECONDS if self.ready else 0)


def watchers(api: ApiClient, store: TemplateStore, *, timing: Timing = WEBHOOK_TIMING) -> list[ResourceWatcher[Any]]:
    """What fills the store."""
    return [
        ResourceWatcher(api, store.node_configs, stored(NODE_CONFIGS), timing=timing),
        ResourceWatcher(api, store.pod_configs, stored(POD_CONFIGS), timing=timing),
        ResourceWatcher(api, store.bindings, stored(BINDINGS), timing=timing),
        ResourceWatcher(api, store.namespaces, WATCHED[Kind.NAMESPACES], timing=timing),
    ]
