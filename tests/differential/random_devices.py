"""Random clusters with devices: slices, classes, rules that taint, claims that have some, and pods that ask for some.

Left out is what is known to differ (docs/use/dra.md): expressions that fail, and constraints on all devices.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from testing.servers.cluster_objects import Manifest, node
from tests.profiles.gpu.dra.manifests import (
    DRIVER,
    claim,
    device,
    device_class,
    request,
    resource_slice,
    taint_rule,
)

EXTENDED: Final = "example.com/gpu"
_LARGE: Final = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("60Gi")) >= 0'
_MODEL: Final = f'device.attributes["{DRIVER}"].model == "{{}}"'
_GI: Final = 2**30


@dataclass(frozen=True, slots=True)
class DeviceCluster:
    """
    objects : nodes, classes, slices and rules
    taken   : claims with the status that they have
    claims  : of the probes, which have none yet
    """

    objects: list[Manifest]
    taken: list[Manifest]
    claims: list[Manifest]
    probes: list[Manifest]


def random_devices(rng: Random, n_probes: int, *, with_rules: bool) -> DeviceCluster:
    """Three to five nodes; with_rules: the server has DeviceTaintRules."""
    nodes = [
        node(f"n{i}", extended={EXTENDED: str(rng.randint(0, 2))} if rng.random() < 0.4 else None)
        for i in range(rng.randint(3, 5))
    ]
    names = [one["metadata"]["name"] for one in nodes]
    slices = [_slice(rng, name) for name in names] + [one for name in names for one in _parts(rng, name)]
    if rng.random() < 0.5:
        where: Manifest = rng.choice([{"allNodes": True}, {"nodeSelector": _selector(rng.sample(names, 2))}])
        shared = resource_slice("wide", *(_device(rng, f"w{i}") for i in range(2)), **where)
        slices.append(shared)
    classes = [
        device_class("gpu", extendedResourceName=EXTENDED),
        device_class("large", f'device.driver == "{DRIVER}"', _LARGE),
        device_class("a-only", _MODEL.format("a")),
    ]
    rules = [_rule(rng, f"rule{i}", names) for i in range(rng.randint(1, 3))] if with_rules else []
    taken = [
        _allocated(rng, one["spec"]["pool"]["name"], it)
        for one in slices
        for it in one["spec"].get("devices", ())
        if rng.random() < 0.3
    ]
    claims, probes = [], []
    for i in range(n_probes):
        spec: Manifest = {"containers": [_container("main")]}
        if rng.random() < 0.3:
            spec = _by_resource(rng)
        else:
            made = _claim(rng, f"claim{i}")
            claims.append(made)
            spec |= {"resourceClaims": [{"name": "c", "resourceClaimName": made["metadata"]["name"]}]}
        metadata = {"name": f"probe{i}", "namespace": "default"}
        probes.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return DeviceCluster([*nodes, *classes, *slices, *rules], taken, claims, probes)


def _device(rng: Random, name: str) -> Manifest:
    memory = rng.choice((40, 80))
    taints = [{"key": "worn", "effect": rng.choice(("NoSchedule", "NoExecute", "None"))}] if rng.random() < 0.2 else []
    made = device(name, memory=f"{memory}Gi", taints=taints, model=rng.choice("ab"), numa=rng.randint(0, 1))
    if rng.random() < 0.4:
        made["allowMultipleAllocations"] = True
        policies: list[Manifest | None] = [
            None,
            {"default": "10Gi", "validValues": ["10Gi", "20Gi", f"{memory}Gi"]},
            {"default": "5Gi", "validRange": {"min": "5Gi", "max": "35Gi", "step": "10Gi"}},
            {"default": "1Gi", "validRange": {"min": "1Gi"}},
        ]
        if policy := rng.choice(policies):
            made["capacity"]["memory"]["requestPolicy"] = policy
    if rng.random() < 0.1:
        made |= {"bindsToNode": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Failed"]}
    return made


def _slice(rng: Random, name: str) -> Manifest:
    return resource_slice(f"s-{name}", *(_device(rng, f"d{i}") for i in range(rng.randint(1, 3))), node=name)


def _parts(rng: Random, name: str) -> list[Manifest]:
    """A card that can be had whole or in two parts, which may be shared."""
    if rng.random() < 0.6:
        return []
    pool = f"parts-{name}"
    sets = [{"name": "card", "counters": {"slices": {"value": "4"}}}]
    first = resource_slice(f"a-{pool}", node=name, pool=pool, count=2, sharedCounters=sets)
    del first["spec"]["devices"]
    devices = [
        _device(rng, part) | {"consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": n}}}]}
        for part, n in (("whole", "4"), ("left", "2"), ("right", "2"))
    ]
    return [first, resource_slice(f"b-{pool}", *devices, node=name, pool=pool, count=2)]


def _selector(names: list[str]) -> Manifest:
    wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": names}
    return {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}


def _rule(rng: Random, name: str, pools: list[str]) -> Manifest:
    selector = {"driver": DRIVER, "pool": rng.choice(pools), "device": rng.choice(("d0", "d1"))}
    kept = {key: value for key, value in selector.items() if rng.random() < 0.7 or key == "pool"}
    return taint_rule(name, rng.choice(("NoSchedule", "NoExecute", "None")), **kept)


def _allocated(rng: Random, pool: str, one: Manifest) -> Manifest:
    result: Manifest = {"request": "r", "driver": DRIVER, "pool": pool, "device": one["name"]}
    if one.get("allowMultipleAllocations"):
        consumed = {"memory": f"{rng.choice((5, 10, 20))}Gi"}
        result |= {"shareID": str(uuid.UUID(int=rng.getrandbits(128), version=4)), "consumedCapacity": consumed}
    made = claim(f"taken-{pool}-{one['name']}", namespace="default")
    return made | {"status": {"allocation": {"devices": {"results": [result]}}}}


def _wish(rng: Random, name: str, *, may_be_all: bool = True) -> Manifest:
    more: Manifest = {}
    if may_be_all and rng.random() < 0.1:
        more["allocationMode"] = "All"
    elif rng.random() < 0.3:
        more["count"] = 2
    if rng.random() < 0.35:
        more["capacity"] = {"requests": {"memory": str(rng.choice((1, 10, 15, 25, 50)) * _GI)}}
    if rng.random() < 0.4:
        tolerations = [{"operator": "Exists"}, {"key": "worn", "operator": "Exists", "effect": "NoSchedule"}]
        more["tolerations"] = [rng.choice(tolerations)]
    expressions = [_MODEL.format(rng.choice("ab"))] if rng.random() < 0.3 else []
    return request(name, *expressions, of=rng.choice(("gpu", "gpu", "large", "a-only")), **more)


def _claim(rng: Random, name: str) -> Manifest:
    constraints: list[Manifest] = []
    if rng.random() < 0.25:
        constraints = [{rng.choice(("matchAttribute", "distinctAttribute")): f"{DRIVER}/numa"}]
    requests = [_wish(rng, f"r{i}", may_be_all=not constraints) for i in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.2:
        entries = [_wish(rng, f"e{i}", may_be_all=False) for i in range(2)]
        requests[-1] = request(requests[-1]["name"], first=entries)
    more: dict[str, Any] = {"constraints": constraints} if constraints else {}
    return claim(name, *requests, namespace="default", **more)


def _container(name: str, asked: Manifest | None = None, restart: str = "") -> Manifest:
    made: Manifest = {"name": name, "image": "i", "resources": {"requests": asked or {}, "limits": asked or {}}}
    return made | ({"restartPolicy": restart} if restart else {})


def _by_resource(rng: Random) -> Manifest:
    kinds = (EXTENDED, EXTENDED, "deviceclass.resource.kubernetes.io/large")

    def asked() -> Manifest:
        return {rng.choice(kinds): str(rng.randint(1, 2))}

    spec: Manifest = {"containers": [_container(f"k{i}", asked()) for i in range(rng.choice((1, 1, 2)))]}
    if rng.random() < 0.5:
        spec["initContainers"] = [
            _container(f"i{i}", asked(), rng.choice(("", "", "Always"))) for i in range(rng.choice((1, 2)))
        ]
    return spec
