"""What a pod's spec needs: the features of a kubelet (KEP-5328), and the extended resources that a DeviceClass may
offer.

Source: component-helpers/nodedeclaredfeatures/features of v1.37 (InferForScheduling). v1.36 has all but the last one,
and its API server drops the field that asks for that.

Source: createResourceRequestAndMappings in framework/plugins/dynamicresources/extendeddynamicresources.go, and
IsDRAExtendedResourceName in util/utils.go, of kube-scheduler 1.37.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from kube.decoding import wire
from kube.decoding.shared_json import resources
from kube.decoding.wire_base import Text, Wire
from kube.objects.objects import DeviceAsk

T = TypeVar("T")
_RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
_HOST_NETWORK_AND_USERS: Final = "UserNamespacesHostNetworkSupport"
_BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Before the name of a DeviceClass: the resource by which all its devices can be requested."""


class _Rule(Wire):
    action: Text = ""


class _Mount(Wire):
    bind_mount_options: list[Text] | None = None


_rules = msgspec.json.Decoder(list[_Rule] | None)
_mounts = msgspec.json.Decoder(list[_Mount] | None)


def needed_features(spec: wire.PodSpec) -> tuple[str, ...]:
    """Names as in status.declaredFeatures of a node, sorted. Nearly all pods need none."""
    needed = []
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    rules = _entries(_rules, b"RestartAllContainers", (one.restart_policy_rules for one in containers))
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.append(_RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        needed.append(_HOST_NETWORK_AND_USERS)
    all_containers = (*containers, *(spec.ephemeral_containers or ()))
    mounts = _entries(_mounts, b"bindMountOptions", (one.volume_mounts for one in all_containers))
    if any(mount.bind_mount_options for mount in mounts):
        needed.append(_BIND_MOUNT_OPTIONS)
    return tuple(needed)


def _entries(decoder: msgspec.json.Decoder[list[T] | None], word: bytes, pieces: Iterable[Raw]) -> Iterator[T]:
    """Of lists that have this word in them: decoding what nearly no pod uses would cost each of them."""
    return chain.from_iterable(decoder.decode(one) or () for one in pieces if word in bytes(one))


def may_be_of_class(kind: str) -> bool:
    """Whether a DeviceClass can offer a resource of this name."""
    return kind.startswith(CLASS_PREFIX) or ("/" in kind and "kubernetes.io/" not in kind)


def device_asks(spec: wire.PodSpec) -> tuple[DeviceAsk, ...]:
    """In the order of the containers, init containers first."""
    return tuple(_asks(spec))


def _asks(spec: wire.PodSpec) -> Iterator[DeviceAsk]:
    initial = spec.init_containers or ()
    for number, container in enumerate((*initial, *(spec.containers or ()))):
        asked = resources(bytes(container.resources))
        amounts = {**asked.limits, **asked.requests}
        is_starting = number < len(initial) and container.restart_policy != "Always"
        for place, kind in enumerate(sorted(amounts)):
            if may_be_of_class(kind) and amounts[kind] >= 1 and amounts[kind].is_integer():
                yield DeviceAsk(
                    sys.intern(container.name), number, sys.intern(kind), place, int(amounts[kind]), is_starting
                )
