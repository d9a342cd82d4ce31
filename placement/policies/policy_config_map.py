"""Policies from a ConfigMap that is watched: key policies.yaml, or the only key there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import msgspec
from kubernetes import client
from msgspec import Raw

from base.backoff import Backoff
from base.errors import InputError
from kube.client.kubernetes_client import ask, required
from kube.client.kubernetes_contract import Timing
from kube.client.kubernetes_source import ResourceSource
from kube.client.kubernetes_steps import Request
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire import Metadata
from kube.decoding.wire_base import Wire
from placement.policies.policy_reports import PolicyEvents
from placement.policies.provider import PolicyOutcome, PolicyProvider

KEY: Final = "policies.yaml"
_READ_SECONDS: Final = 10.0

_TIMING: Final = Timing(watch_seconds=(20, 25), watch_read_seconds=30.0, backoff=Backoff(longest=5.0))
"""Streams end by themselves before silence counts as a dead connection: a document that hardly ever changes says
nothing for hours, and one that does must not go unnoticed for long."""


class ConfigMapJson(Wire):
    """A ConfigMap; binaryData is skipped."""

    metadata: Metadata
    data: dict[str, str] | None = None


_DECODER: Final = msgspec.json.Decoder(ConfigMapJson)


@dataclass(frozen=True, slots=True)
class PolicyConfigMap:
    """What matters of a ConfigMap. version: its resourceVersion."""

    namespace: str
    name: str
    uid: str
    version: str
    data: Mapping[str, str] = field(default_factory=dict)


def policy_text(config_map: PolicyConfigMap) -> str:
    """The document: the value of policies.yaml, or of the only key. Raises InputError where it is neither."""
    data = config_map.data
    if KEY in data:
        return data[KEY]
    if len(data) == 1:
        return next(iter(data.values()))
    found = f"the keys {', '.join(sorted(data)[:5])}" if data else "no data"
    raise InputError(f"ConfigMap {config_map.namespace}/{config_map.name} has {found}: name one {KEY}")


def watched_config_map(namespace: str, name: str) -> Watched[PolicyConfigMap]:
    """One ConfigMap. The rights to get, list and watch it by its name are enough."""
    return Watched(
        plural=f"configmap {namespace}/{name}",
        singular="ConfigMap",
        path=f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps",
        decode=_decode,
        query={"fieldSelector": f"metadata.name={name}"},
    )


def read_config_map(api: client.ApiClient, namespace: str, name: str) -> PolicyConfigMap:
    """Read the ConfigMap. Raises InputError if it cannot be read, UnreachableApiServer if no server answers."""
    watched = watched_config_map(namespace, name)
    answer = ask(api, Request(f"{watched.path}/{quote(name, safe='')}"), seconds=_READ_SECONDS)
    if answer.status == 404:
        raise InputError(f"there is no ConfigMap {namespace}/{name}: create it, or name another")
    required(answer, f"read ConfigMap {namespace}/{name}", grant="get on it")
    return watched.decoded(answer.body)[0]


def _decode(body: bytes | Raw) -> tuple[PolicyConfigMap, str]:
    decoded = _DECODER.decode(body)
    metadata, version = decoded.metadata, decoded.metadata.resource_version or ""
    made = PolicyConfigMap(metadata.namespace or "", metadata.name, metadata.uid or "", version, decoded.data or {})
    return made, version


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
