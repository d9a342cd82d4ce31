"""Which new pods are advised on, which of them are held by our scheduling gate, and which pods are never held.

A label of the pod decides, else the same label of its namespace, else its policy, else the settings. Pods that must
not wait are never held: those of system namespaces, of DaemonSets, on the host network, static ones, and those that
name a node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from base.excluded import OWN_NAMESPACE, SYSTEM_NAMESPACES, ExcludedOptions
from forecast.service_key import ServiceKey
from kube.objects.objects import GATE

ADVICE: Final = GATE
"""Name of the scheduling gate, of the label that asks for advice, and of the annotation that says what it was."""

_MIRROR: Final = "kubernetes.io/config.mirror"


class AdviceMode(StrEnum):
    """What a pod asks for: to be held until its node is named, to prefer nodes and wait for nothing, or neither."""

    ADVISE = "advise"
    PREFER = "prefer"
    OFF = "off"


_BY_VALUE: Final[Mapping[str, AdviceMode]] = {mode.value: mode for mode in AdviceMode}


def labelled_mode(labels: Mapping[str, str], namespace_labels: Mapping[str, str], otherwise: AdviceMode) -> AdviceMode:
    """Return what the label of the pod says, else that of its namespace; a value that is no mode means off."""
    value = labels.get(ADVICE, namespace_labels.get(ADVICE))
    if value is None:
        return otherwise
    return _BY_VALUE.get(value, AdviceMode.OFF)


def why_not_held(
    namespace: str,
    *,
    scheduler_name: str,
    scheduler_names: Collection[str],
    service: ServiceKey | None = None,
    excluded: ExcludedOptions,
    owner_kind: str = "",
    host_network: bool = False,
    node_name: str = "",
    annotations: Mapping[str, str] | None = None,
) -> str:
    """Return why a pod is left alone whatever its labels say; '' = it may be held.

    service    : of the pod; None = not known: then its namespace alone says whether it is excluded
    owner_kind : of its controller
    """
    if namespace in SYSTEM_NAMESPACES or namespace == OWN_NAMESPACE:
        return f"pods of namespace {namespace} are left alone"
    kind, name = ("", "") if service is None else (service.kind, service.name)
    if why := excluded.why(namespace, kind, name):
        return why
    if scheduler_name not in scheduler_names:
        return f"its schedulerName is {scheduler_name}"
    if owner_kind in ("DaemonSet", "Node"):
        return f"it is a pod of a {owner_kind}"
    if host_network:
        return "it is on the network of its node"
    if node_name or _MIRROR in (annotations or {}):
        return "it has its node already"
    return ""
