"""A cluster file with one thing doubled, missing or dangling is read as it is, or what is wrong is said by name."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from cluster.tables.cluster_file import ClusterObjects, load_into, parse_cluster
from cluster.tables.self_check import self_check
from cluster.tables.state import ClusterState

Object = dict[str, Any]


def api_object(kind: str, name: str, api_version: str, **more: Any) -> Object:
    metadata = {"name": name, "uid": f"uid-{kind}-{name}", "resourceVersion": "10"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | more


def make_cluster() -> list[Object]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    nodes = [api_object("Node", f"node-{i}", "v1", spec={}, status=status) for i in range(3)]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-7d9", "uid": "uid-ReplicaSet-api-7d9"}
    pods = []
    for i in range(4):
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": f"{i + 1}00m", "memory": "1Gi"}}}
        spec = {"nodeName": f"node-{i % 3}", "containers": [container], "priority": 0}
        pods.append(api_object("Pod", f"api-7d9-{i}", "v1", spec=spec, status={"phase": "Running"}))
        pods[-1]["metadata"] |= {"namespace": "shop", "ownerReferences": [owner | {"controller": True}]}
    replica_set = api_object("ReplicaSet", "api-7d9", "apps/v1")
    replica_set["metadata"]["namespace"] = "shop"
    objects: list[Object] = json.loads(json.dumps([*nodes, *pods, replica_set]))  # nothing is shared
    return objects


CLUSTER = make_cluster()


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """All places in an object that a field or an item can be taken from."""
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [one for key, below in inner for one in paths_of(below, (*path, key))]


def place_of(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def read(objects: list[Object]) -> ClusterObjects | str:
    """What is read, which is what the file says; or the sentence that refuses it."""
    try:
        found = parse_cluster(json.dumps({"kind": "List", "items": objects}).encode())
    except InputError as error:
        return str(error)
    state = ClusterState()
    load_into(state, found)
    assert self_check(state) == ()
    assert len(state.pods) == len(found.pods) and len(state.row_of) >= len(found.nodes)
    return found


def load_of(found: ClusterObjects) -> dict[str, float]:
    """Requested CPU in millicores by node."""
    load = {node.name: 0.0 for node in found.nodes}
    for pod in found.pods:
        if pod.node in load:
            load[pod.node] += pod.requests.get("cpu", 0.0)
    return {name: round(cores * 1000) for name, cores in load.items()}


RIGHT = {"node-0": 500, "node-1": 200, "node-2": 300}


def test_the_cluster_itself_is_right_without_a_remark() -> None:
    found = read(CLUSTER)
    assert isinstance(found, ClusterObjects)
    assert (found.remarks, load_of(found)) == ((), RIGHT)


def _newer(one: Object) -> None:
    one["metadata"]["resourceVersion"] = "11"
    one.setdefault("status", {})["note"] = "later"


def _other_uid(one: Object) -> None:
    one["metadata"]["uid"] = "another"


def _other_name(one: Object) -> None:
    one["metadata"]["name"] = "another"


def _other_content(one: Object) -> None:
    one["status"] = {"phase": "Failed"}


def _same(one: Object) -> None:
    pass


CHANGES = st.sampled_from([_same, _newer, _other_uid, _other_name, _other_content])


@given(st.sampled_from(range(len(CLUSTER))), CHANGES, st.integers(0, len(CLUSTER)))
def test_an_object_that_is_there_twice_counts_once_or_is_refused(
    which: int, change: Callable[[Object], None], place: int
) -> None:
    objects = make_cluster()
    twin = copy.deepcopy(objects[which])
    change(twin)
    objects.insert(place, twin)
    found = read(objects)
    name = CLUSTER[which]["metadata"]["name"]
    if isinstance(found, str):
        assert name in found and change not in (_same, _newer)
        return
    assert change in (_same, _newer)
    assert load_of(found) == RIGHT
    assert any(name in remark for remark in found.remarks)


@given(st.data())
def test_a_field_that_is_missing_is_read_as_missing_or_named(data: st.DataObject) -> None:
    objects = make_cluster()
    which = data.draw(st.sampled_from(range(len(objects))))
    path = data.draw(st.sampled_from(paths_of(objects[which])))
    place = place_of(objects[which], path)
    del place[path[-1]]
    found = read(objects)
    kind, name = CLUSTER[which]["kind"], CLUSTER[which]["metadata"]["name"]
    if isinstance(found, str):
        assert kind in found and (name in found or path[:2] in (("metadata",), ("metadata", "name")))
        return
    read_objects = [*found.nodes, *found.pods, *found.replica_sets]
    if len(read_objects) < len(CLUSTER):
        assert any(name in remark for remark in found.remarks), "an object is gone without a word"
        return
    if load_of(found) != RIGHT:  # a request, a seat or a container is gone: that is what the file says now
        assert kind == "Pod" and path[0] == "spec"
    if kind == "Node" and path[:2] in (("status",), ("status", "allocatable")) and "capacity" not in path:
        assert any(name in remark for remark in found.remarks)


@given(st.sampled_from(range(len(CLUSTER))))
def test_an_object_that_is_missing_leaves_the_others_right(which: int) -> None:
    objects = make_cluster()
    gone = objects.pop(which)
    found = read(objects)
    assert isinstance(found, ClusterObjects)
    name = gone["metadata"]["name"]
    if gone["kind"] == "Node":
        assert load_of(found) == {one: load for one, load in RIGHT.items() if one != name}
        assert any(name in remark for remark in found.remarks)
    elif gone["kind"] == "Pod":
        assert sum(load_of(found).values()) == 1000 - 100 * (int(name[-1]) + 1)
    else:
        assert load_of(found) == RIGHT


@given(st.integers(3, 6), st.text("abc", min_size=1, max_size=3))
def test_a_pod_that_points_to_nothing_is_named(which: int, target: str) -> None:
    objects = make_cluster()
    spec = objects[which]["spec"]
    spec["nodeName"] = target
    del spec["priority"]
    spec["priorityClassName"] = f"class-{target}"
    objects[which]["metadata"]["ownerReferences"][0]["uid"] = target
    found = read(objects)
    assert isinstance(found, ClusterObjects)
    name = CLUSTER[which]["metadata"]["name"]
    assert any(f"shop/{name}" in remark and target in remark for remark in found.remarks)
    assert any(f"class-{target}" in remark for remark in found.remarks)
    assert sum(load_of(found).values()) == 1000 - 100 * (which - 2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data(), JSON)
def test_any_value_in_any_place_is_read_or_refused_in_one_sentence(data: st.DataObject, value: Any) -> None:
    objects = make_cluster()
    which = data.draw(st.sampled_from(range(len(objects))))
    path = data.draw(st.sampled_from(paths_of(objects[which])))
    place_of(objects[which], path)[path[-1]] = value
    found = read(objects)
    assert "\n" not in found if isinstance(found, str) else found.nodes
