"""What a file holds more than once counts once, or is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from base.errors import InputError
from cluster.tables.cluster_file_remarks import unique_objects
from kube.decoding.object_files import objects_of


def pod(name: str = "a", *, uid: str = "u1", version: str = "7", node: str = "n1", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}} | more


def unique(*objects: dict[str, Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    kept, remarks = unique_objects(objects_of(json.dumps(objects).encode()))
    return [json.loads(bytes(one.json)) for one in kept], remarks


def test_what_is_there_once_stays_as_it_is() -> None:
    bare = {"kind": "Pod", "metadata": {}}
    objects = [pod(), pod("b", uid="u2"), pod("a", uid="u1", kind="Other"), bare, bare]
    assert unique(*objects) == (objects, ())


def test_the_same_object_counts_once_with_a_remark() -> None:
    kept, remarks = unique(pod(), pod("b", uid="u2"), dict(reversed(pod().items())))
    assert [one["metadata"]["name"] for one in kept] == ["a", "b"]
    assert remarks == ("it holds 1 object more than once, each time the same (Pod shop/a): each counts once",)


def test_many_have_one_remark() -> None:
    objects = [pod(f"p{i}", uid=f"u{i}") for i in range(9)]
    _, (remark,) = unique(*objects, *objects)
    assert "9 objects more than once" in remark and "Pod shop/p0, Pod shop/p1, Pod shop/p2 and 6 more" in remark


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_states_of_one_object_the_newer_counts(order: int) -> None:
    kept, (remark,) = unique(*[pod(version="99", node="n1"), pod(version="100", node="n2")][::order])
    assert [one["spec"]["nodeName"] for one in kept] == ["n2"]
    assert "Pod shop/a with resourceVersion " in remark and "100 counts" in remark


def test_one_state_in_two_versions_of_its_api_counts_once() -> None:
    first = pod(kind="Scaler", apiVersion="autoscaling/v1")
    kept, (remark,) = unique(first, pod(kind="Scaler", apiVersion="autoscaling/v2", node="other"))
    assert kept == [first] and "Scaler shop/a" in remark


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([pod(), pod("b")], "Pod shop/a and Pod shop/b have the same UID u1: .*leave metadata.uid out of a copy"),
        ([pod(), pod(uid="u2")], "Pod shop/a is there with two UIDs, u1 and u2: these are two clusters"),
        ([pod(), pod(node="n2")], "Pod shop/a is there twice, with different spec.nodeName, and no resourceVersion"),
        ([pod(version="x"), pod(version="y")], "different metadata.resourceVersion, and no resourceVersion says"),
        ([pod(uid="", version="", x=1), pod(uid="", version="")], "Pod shop/a is there twice, with different x,"),
    ],
)
def test_what_contradicts_is_refused_by_its_name(objects: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        unique(*objects)
