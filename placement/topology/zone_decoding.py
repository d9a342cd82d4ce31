"""JSON of a NodeResourceTopology -> node_zones.py. What can be listed and watched, and how it is decoded.

    zones:
      - {name: node-0, type: Node, resources: [...], costs: [...], attributes: [{name: gpus, value: "0,1,2,3"}]}
      - {name: nvlink-0, type: NVLink, attributes: [{name: gpus, value: "0,1,4,5"}]}
    attributes: [{name: topologyManagerPolicy, value: single-numa-node}, {name: topologyManagerScope, value: pod}]

Attribute `gpus` is ours, as are zones of type NVLink and attribute `nvlink-group` of a zone, which joins the cards of
all zones with the same value. Where `gpus` is missing the cards are taken to be numbered in the order of the zones, as
many in each as its capacity says.

The policy is read as scheduler-plugins reads it (pkg/noderesourcetopology/nodeconfig/topologymanager.go): from the
attributes, else from the deprecated topologyPolicies. A zone's `parent` is its socket. See node_zones.py for what is
said of CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Raw

from base.errors import InputError
from cluster.tables.columns import whole_units
from kube.decoding import wire
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire_base import StringMap, Text, Wire
from kube.objects.quantity import parse_quantity
from placement.devices.declared_devices import MOST_DEVICES
from placement.node_rule_settings import DeviceOptions
from placement.topology.node_zones import (
    NO_LAYOUT,
    CardLayout,
    Groups,
    NodeZones,
    NumaZone,
    Scope,
    TopologyManagerPolicy,
    cpu_manager,
    sockets_of,
)

PATH: Final = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"

GPUS: Final = "gpus"
NVLINK_GROUP: Final = "nvlink-group"

_MOST_ZONES: Final = 64
_LARGEST_ZONE: Final = 1023
_NUMA_NAME: Final = re.compile(r"node-([0-9]{1,4})\Z")

T = TypeVar("T", TopologyManagerPolicy, Scope)


class ZoneAttributeJson(Wire):
    """Of a zone or of all."""

    name: Text
    value: Text


class CostJson(Wire):
    """Distance to another zone."""

    name: Text
    value: int


class ResourceJson(Wire):
    """Of a zone."""

    name: Text
    capacity: str | int | float = 0
    allocatable: str | int | float = 0
    available: str | int | float = 0


class ZoneJson(Wire):
    """zones[]."""

    name: Text
    type: Text
    parent: Text = ""
    costs: list[CostJson] | None = None
    attributes: list[ZoneAttributeJson] | None = None
    resources: list[ResourceJson] | None = None


class TopologyJson(Wire):
    """A NodeResourceTopology."""

    metadata: wire.Metadata
    zones: Annotated[list[ZoneJson], Meta(max_length=4096)] | None = None
    attributes: list[ZoneAttributeJson] | None = None
    topology_policies: list[Text] | None = None


_OBJECT: Final = msgspec.json.Decoder(TopologyJson)
_ANNOTATIONS: Final = msgspec.json.Decoder(StringMap | None)

_SCOPES: Final = MappingProxyType({"PodLevel": Scope.POD, "ContainerLevel": Scope.CONTAINER})
_OLD_POLICIES: Final = MappingProxyType(
    {
        old + level: (policy, scope)
        for level, scope in _SCOPES.items()
        for old, policy in (
            ("SingleNUMANode", TopologyManagerPolicy.SINGLE_NUMA_NODE),
            ("Restricted", TopologyManagerPolicy.RESTRICTED),
            ("BestEffort", TopologyManagerPolicy.BEST_EFFORT),
        )
    }
)


def node_resource_topologies(options: DeviceOptions) -> Watched[NodeZones]:
    """Where the definition is not installed there are none. options: which resources are cards."""
    return Watched("noderesourcetopologies", "NodeResourceTopology", PATH, _decoder(options), optional=True)


def _decoder(options: DeviceOptions) -> Callable[[bytes | Raw], tuple[NodeZones, str]]:
    def decode(body: bytes | Raw) -> tuple[NodeZones, str]:
        found = _OBJECT.decode(body)
        policy, scope = _manager(found)
        numa = _numa_zones(found.zones or ())
        annotations = _ANNOTATIONS.decode(found.metadata.annotations) or {}
        sockets = sockets_of(annotations)
        zones = tuple(_numa_zone(number, zone, zone.parent or sockets.get(number, "")) for number, zone in numa.items())
        cpus = cpu_manager(_attributes(found.attributes), annotations)
        layout = _layout(found.zones or (), numa, options)
        made = NodeZones(found.metadata.name, policy, scope, zones, layout, cpus)
        return made, found.metadata.resource_version or ""

    return decode


def _numa_zone(number: int, zone: ZoneJson, socket: str) -> NumaZone:
    resources, costs = zone.resources or (), zone.costs or ()
    available = {one.name: _units(one.name, one.available) for one in resources}
    return NumaZone(
        number,
        available,
        {to: cost.value for cost in costs if (to := _zone_number(cost.name)) is not None and 0 <= cost.value < 2**31},
        {one.name: max(available[one.name], _units(one.name, _counted(one))) for one in resources},
        socket,
    )


def _counted(one: ResourceJson) -> str | int | float:
    """What the kubelet compares a request with: of CPUs and devices all there are (generateCPUTopologyHints in
    pkg/kubelet/cm/cpumanager, generateDeviceTopologyHints), of memory what is allocatable (calculateHints)."""
    return one.allocatable if one.name == "memory" or one.name.startswith("hugepages-") else one.capacity


def _units(name: str, amount: str | int | float) -> int:
    return whole_units(name, parse_quantity(amount))


def _manager(found: TopologyJson) -> tuple[TopologyManagerPolicy, Scope]:
    policy, scope = TopologyManagerPolicy.NONE, Scope.CONTAINER
    if found.topology_policies:
        policy, scope = _OLD_POLICIES.get(found.topology_policies[0], (policy, scope))
    said = _attributes(found.attributes)
    return _known(TopologyManagerPolicy, said.get("topologyManagerPolicy"), policy), _known(
        Scope, said.get("topologyManagerScope"), scope
    )


def _known(kind: type[T], text: str | None, otherwise: T) -> T:
    return next((one for one in kind if one.value == text), otherwise)


def _attributes(found: Iterable[ZoneAttributeJson] | None) -> Mapping[str, str]:
    return {one.name: one.value for one in found or ()}


def _zone_number(name: str) -> int | None:
    """helper/numanode/numanode.go."""
    match = _NUMA_NAME.match(name)
    return int(match[1]) if match and int(match[1]) <= _LARGEST_ZONE else None


def _numa_zones(zones: Sequence[ZoneJson]) -> dict[int, ZoneJson]:
    found = {number: zone for zone in zones if zone.type == "Node" and (number := _zone_number(zone.name)) is not None}
    if len(found) > _MOST_ZONES:
        raise InputError(f"has {len(found)} NUMA zones, at most {_MOST_ZONES} are read")
    return dict(sorted(found.items()))


def _layout(zones: Sequence[ZoneJson], numa: Mapping[int, ZoneJson], options: DeviceOptions) -> CardLayout:
    by_zone = _cards_of(list(numa.values()), options)
    named: dict[str, list[int]] = {}
    for zone, cards in zip(numa.values(), by_zone, strict=True):
        if group := _attributes(zone.attributes).get(NVLINK_GROUP):
            named.setdefault(group, []).extend(cards)
    linked = [tuple(sorted(cards)) for cards in named.values()]
    linked += _cards_of([zone for zone in zones if zone.type == "NVLink"], options)
    nvlink = _once_each(linked)
    if not any(by_zone) and not nvlink:
        return NO_LAYOUT
    having = [(number, cards) for number, cards in zip(numa, by_zone, strict=True) if cards]
    return CardLayout(nvlink, tuple(cards for _, cards in having), tuple(number for number, _ in having))


def _cards_of(zones: Sequence[ZoneJson], options: DeviceOptions) -> list[tuple[int, ...]]:
    """Of each zone; by what all of them say in `gpus`, else by how many each has."""
    texts = [_attributes(zone.attributes).get(GPUS) for zone in zones]
    if any(text is not None for text in texts):
        cards = [_numbers(text or "") for text in texts]
        together = [card for of_zone in cards for card in of_zone]
        if len(together) != len(set(together)):
            raise InputError(f"attribute {GPUS} of its zones names a card twice: each card is in one zone of a type")
        return cards
    made, start = [], 0
    for zone in zones:
        count = max(
            (
                min(max(_units(one.name, one.capacity), 0), MOST_DEVICES)
                for one in zone.resources or ()
                if one.name in options.resources
            ),
            default=0,
        )
        made.append(tuple(range(start, min(start + count, MOST_DEVICES))))
        start += count
    return made


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part for part in map(str.strip, text.split(",")) if part]
    if not all(part.isascii() and part.isdigit() and len(part) <= 4 and int(part) < MOST_DEVICES for part in parts):
        raise InputError(f'attribute {GPUS} is {text[:60]!r}: it must list indices of cards such as "0,1,2,3"')
    return tuple(sorted(map(int, parts)))


def _once_each(groups: Iterable[tuple[int, ...]]) -> Groups:
    """Groups of more than one card; a card that an earlier one has is left out."""
    seen: set[int] = set()
    made = []
    for group in groups:
        cards = tuple(card for card in group if card not in seen)
        seen.update(cards)
        if len(cards) > 1:
            made.append(cards)
    return tuple(made)
