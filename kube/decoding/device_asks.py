"""What of a pod's spec a DeviceClass may offer: extended resources, container by container.

Source: createResourceRequestAndMappings in framework/plugins/dynamicresources/extendeddynamicresources.go, and
IsDRAExtendedResourceName in util/utils.go, of kube-scheduler 1.37.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from kube.decoding import wire
from kube.decoding.shared_json import resources
from kube.objects.objects import DeviceAsk

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Before the name of a DeviceClass: the resource by which all its devices can be requested."""


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
