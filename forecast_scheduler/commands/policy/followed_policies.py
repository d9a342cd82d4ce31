"""The policies that the settings name, followed while a command runs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.registry import Collector

from forecast_scheduler.commands.policy.policy_documents import ReadPolicies, read_in_place
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import policy_defaults
from forecast_scheduler.settings.policy_place import namespace_and_name
from kube.client.cluster_access import ClusterAccess
from kube.client.kubernetes_contract import WatchStatus
from kube.decoding.decoding import Kind
from kube.events.event_recorder import api_server_post
from placement.index.namespaces import NamespaceLabels
from placement.policies.compiling import PolicyDefaults
from placement.policies.file_source import PolicyFile
from placement.policies.policy_config_map import config_map_source
from placement.policies.policy_reports import PolicyCollector, PolicyEvents
from placement.policies.provider import PolicyProvider
from scorer.scorer import Scorer

_PATIENCE_SECONDS: Final = 5.0

LastContact = Callable[[], float | None]
"""Unix seconds when the source was last heard of; None = never."""


@dataclass(frozen=True, slots=True)
class LivePolicies:
    """provider: which pod is placed how; collector: for /metrics."""

    provider: PolicyProvider
    collector: Collector


@contextmanager
def open_policies(
    settings: Settings,
    access: ClusterAccess,
    *,
    has_api_server: bool = True,
    defaults: PolicyDefaults | None = None,
) -> Iterator[LivePolicies | None]:
    """Policies that follow their document while the context lasts; None where the settings name none.

    has_api_server : whether the pods may get events, those that name an unknown policy
    defaults       : what policies leave out; None = as the settings of the extender say
    A document that is missing or broken ends nothing: the settings apply until there is a good one. Raises InputError
    where the settings themselves are wrong, or there is no way to an API server that is needed.
    """
    ours = settings.policies
    if ours.file is None and ours.config_map is None:
        yield None
        return
    where = f"ConfigMap {ours.config_map}" if ours.config_map else f"file {ours.file}"
    provider = PolicyProvider(defaults or policy_defaults(settings), source=where)
    with ExitStack() as stack:
        events: PolicyEvents | None = None
        if ours.events and (has_api_server or ours.config_map):
            events = PolicyEvents(api_server_post(access.client()), instance=socket.gethostname())
            events.start()
            stack.callback(events.stop)
            if has_api_server:
                provider.tell_unknown(events.unknown)
        if ours.file is not None:
            last_contact = _look_at(ours.file, provider, stack)
        else:
            last_contact = _follow(ours.config_map or "", access, provider, events, stack)
        yield LivePolicies(provider, PolicyCollector(provider, events, last_contact=last_contact))


def read_policies(
    settings: Settings, access: ClusterAccess, defaults: PolicyDefaults | None = None
) -> PolicyProvider | None:
    """Read the policies once; None if the settings name none. defaults: see open_policies.

    Raises InputError for a missing or broken document, too: an answer without it would be wrong.
    """
    if settings.policies.place is None:
        return None
    read = read_in_place(settings.policies.place, settings, access, defaults)
    return provider_of(read, defaults or policy_defaults(settings))


def provider_of(read: ReadPolicies, defaults: PolicyDefaults) -> PolicyProvider:
    """Provide policies that were read once, and are not read again."""
    provider = PolicyProvider(defaults, source=read.where)
    if read.text:
        provider.offer(read.text)
    return provider


def scored_by_policy(scorer: Scorer, provider: PolicyProvider | None) -> Collection[Kind]:
    """Let rules that look at the labels of namespaces read them from the scorer, where nothing else follows these.

    Returns the kinds of objects that this needs.
    """
    if provider is None:
        return ()
    namespaces = NamespaceLabels()
    scorer.tables.attach((Kind.NAMESPACES,), namespaces)
    provider.read_labels_with(namespaces.labels_of)
    return (Kind.NAMESPACES,)


def _look_at(path: Path, provider: PolicyProvider, stack: ExitStack) -> LastContact:
    file = PolicyFile(path, provider)
    file.start()
    stack.callback(file.stop)
    return lambda: file.last_contact


def _follow(
    config_map: str, access: ClusterAccess, provider: PolicyProvider, events: PolicyEvents | None, stack: ExitStack
) -> LastContact:
    namespace, name = namespace_and_name(config_map)
    source = config_map_source(access.client(), namespace, name, provider, events)
    source.start()
    stack.callback(source.stop)

    def status() -> WatchStatus:
        (found,) = source.statuses().values()
        return found

    if not source.wait_synced(_PATIENCE_SECONDS):
        provider.still_waiting(f"ConfigMap {config_map} could not be read so far: {status().last_error or 'no answer'}")
    return lambda: status().last_contact
