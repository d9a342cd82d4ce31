from __future__ import annotations

from profiles.gpu.dra.device_pools import DeviceInventory, PoolOnNode
from profiles.gpu.dra.dra_objects import PoolId
from tests.profiles.gpu.dra.manifests import DRIVER, Manifest, device, resource_slice, slice_of


def inventory(*slices: Manifest) -> DeviceInventory:
    made = DeviceInventory()
    made.replace([slice_of(one) for one in slices])
    return made


def of(made: DeviceInventory, node: str) -> list[PoolOnNode]:
    return made.of_node(
        node, lambda where: where.all_nodes or where.node == node or (where.terms is not None and node == "wide")
    )


def devices(made: DeviceInventory, node: str) -> list[str]:
    return [device.id.device for pool in of(made, node) for device in pool.devices]


def test_a_pool_is_complete_with_all_slices_of_its_generation() -> None:
    made = inventory(resource_slice("a", device("a0"), node="n", pool="p", count=2))
    pool = PoolId(DRIVER, "p")
    assert not made.pools[pool].is_complete
    assert made.put(slice_of(resource_slice("b", device("b0"), node="n", pool="p", count=2))) == {"n"}
    assert made.pools[pool].is_complete
    assert made.put(slice_of(resource_slice("a", device("a0"), node="n", pool="p", generation=2, count=2))) == {"n"}
    assert not made.pools[pool].is_complete and devices(made, "n") == ["a0"]
    made.delete(slice_of(resource_slice("b", node="n", pool="p")))
    made.delete(slice_of(resource_slice("a", node="n", pool="p")))
    assert not made.pools and devices(made, "n") == [] and not made.own_pools


def test_names_must_be_unique_in_a_pool_and_counters_known() -> None:
    twice = inventory(
        resource_slice("a", device("x"), node="n1", pool="p", count=2),
        resource_slice("b", device("x"), node="n2", pool="p", count=2),
    )
    assert twice.pools[PoolId(DRIVER, "p")].mistake == "duplicate device name x"
    part = device("x") | {"consumesCounters": [{"counterSet": "c", "counters": {"slices": {"value": "1"}}}]}
    unknown = inventory(resource_slice("a", part, node="n1", pool="p"))
    assert unknown.pools[PoolId(DRIVER, "p")].mistake == "counter slices not found in counter set c"


def test_devices_of_many_nodes() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}
    made = inventory(
        resource_slice("a", device("everywhere"), allNodes=True),
        resource_slice("b", device("in-rack"), nodeSelector=terms),
        resource_slice(
            "c",
            device("on-n1") | {"nodeName": "n1"},
            device("wide") | {"nodeSelector": terms},
            device("all") | {"allNodes": True},
            perDeviceNodeSelection=True,
        ),
        resource_slice("d", device("local"), node="n1"),
    )
    assert devices(made, "n1") == ["everywhere", "on-n1", "all", "local"]
    assert devices(made, "wide") == ["everywhere", "in-rack", "wide", "all"]
    assert devices(made, "n2") == ["everywhere", "all"]
    assert made.nodes_of(PoolId(DRIVER, "a")) is None and made.nodes_of(PoolId(DRIVER, "n1")) == {"n1"}
    assert made.put(slice_of(resource_slice("a", device("moved"), node="n2", pool="a"))) is None
    assert devices(made, "n1") == ["on-n1", "all", "local"] and devices(made, "n2") == ["moved", "all"]
