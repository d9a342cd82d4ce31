"""Policies from a ConfigMap that is watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubernetes import client

from base.errors import InputError
from kube.client.kubernetes_contract import Timing
from kube.client.kubernetes_source import ResourceSource
from kube.client.kubernetes_steps import Backoff
from kube.client.kubernetes_watcher import ResourceWatcher
from placement.policies.config_map import PolicyConfigMap, policy_text, watched_config_map
from placement.policies.events import PolicyEvents
from placement.policies.provider import PolicyProvider
from placement.policies.status import PolicyOutcome

_TIMING: Final = Timing(watch_seconds=(20, 25), watch_read_seconds=30.0, backoff=Backoff(longest=5.0))
"""Streams end by themselves before silence counts as a dead connection: a document that hardly ever changes says
nothing for hours, and one that does must not go unnoticed for long."""


class ConfigMapSink:
    """Hands what is watched to the provider, and what became of it to events. Implements ResourceSink."""

    def __init__(self, provider: PolicyProvider, events: PolicyEvents | None = None) -> None:
        """events: None = only the log is written"""
        self._provider, self._events = provider, events
        self._last: PolicyConfigMap | None = None

    def replace(self, objects: Sequence[PolicyConfigMap]) -> None:
        if objects:
            self.put(objects[0])
        else:
            self._tell(self._provider.gone())

    def put(self, obj: PolicyConfigMap) -> None:
        self._last = obj
        try:
            text = policy_text(obj)
        except InputError as error:
            self._tell(self._provider.refuse(str(error)))
        else:
            self._tell(self._provider.offer(text, obj.version))

    def delete(self, obj: PolicyConfigMap) -> None:
        self._last = obj
        self._tell(self._provider.gone())

    def _tell(self, outcome: PolicyOutcome | None) -> None:
        about = self._last
        if outcome is None or about is None or self._events is None:
            return
        regarding = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
        self._events.document(regarding, outcome)


def config_map_source(
    api: client.ApiClient, namespace: str, name: str, provider: PolicyProvider, events: PolicyEvents | None = None
) -> ResourceSource:
    """Follows a ConfigMap into the provider, once it is started."""
    sink = ConfigMapSink(provider, events)
    return ResourceSource([ResourceWatcher(api, sink, watched_config_map(namespace, name), timing=_TIMING)])
