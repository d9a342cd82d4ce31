from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from base.errors import InputError
from cluster.tables.cluster_file import load_into, parse_cluster, read_cluster_file
from cluster.tables.self_check import self_check
from cluster.tables.state import ClusterState
from kube.decoding.decoding import Kind
from profiles.job.cron.cron_jobs import WATCHED_CRON_JOBS


def api_object(kind: str, name: str, api_version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "uid": f"{kind}-{name}"}, **more}


NODE = api_object("Node", "n1", status={"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}})
POD = api_object("Pod", "p1", spec={"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "100m"}}}]})
CLUSTER = {
    "apiVersion": "v1",
    "kind": "List",
    "metadata": {"resourceVersion": ""},
    "items": [
        POD,
        NODE,
        api_object("ReplicaSet", "r1", "apps/v1"),
        api_object("Job", "j1", "batch/v1"),
        api_object("Job", "theirs", "batch.volcano.sh/v1alpha1"),
        api_object("Service", "s1"),
        api_object("Service", "s2"),
        {"metadata": {"name": "what"}},
    ],
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(CLUSTER))
    return path


def test_an_export_is_read_and_loaded(written: Path) -> None:
    objects = read_cluster_file(written)
    assert [n.name for n in objects.nodes] == ["n1"]
    assert [p.name for p in objects.pods] == ["p1"]
    assert [r.name for r in objects.replica_sets] == ["r1"]
    assert [j.name for j in objects.jobs] == ["j1"]
    assert objects.skipped == {"Service": 2, "Job": 1, "without a kind": 1}
    state = ClusterState()
    assert load_into(state, objects)
    assert state.requested[state.row_of["n1"], 0] == 0.1
    assert self_check(state) == ()
    assert load_into(state, objects) == []


def test_yaml_holds_the_same(written: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.yaml"
    one.write_text(yaml.safe_dump(CLUSTER))
    several = tmp_path / "several.yml"
    several.write_text("---\n" + yaml.safe_dump_all(CLUSTER["items"]))
    assert read_cluster_file(one) == read_cluster_file(several) == read_cluster_file(written)


def test_namespaces_and_storage_are_read_if_they_are_there() -> None:
    items = [
        NODE,
        api_object("Namespace", "shop"),
        api_object("PersistentVolume", "pv"),
        api_object("PersistentVolumeClaim", "c1"),
        api_object("PersistentVolumeClaim", "c2"),
        api_object("StorageClass", "fast", "storage.k8s.io/v1", provisioner="d"),
        api_object("CSINode", "n1", "storage.k8s.io/v1"),
        api_object("CSIDriver", "d", "storage.k8s.io/v1"),
        api_object("CSIStorageCapacity", "x", "storage.k8s.io/v1", storageClassName="fast"),
        api_object("VolumeAttachment", "a", "storage.k8s.io/v1"),
        api_object("StorageClass", "theirs", "example.org/v1"),
    ]
    objects = parse_cluster(json.dumps({"items": items}).encode())
    assert {kind: [one.name for one in found] for kind, found in objects.others.items()} == {
        Kind.NAMESPACES: ["shop"],
        Kind.VOLUMES: ["pv"],
        Kind.CLAIMS: ["c1", "c2"],
        Kind.STORAGE_CLASSES: ["fast"],
        Kind.CSI_NODES: ["n1"],
        Kind.CSI_DRIVERS: ["d"],
        Kind.STORAGE_CAPACITIES: ["x"],
        Kind.VOLUME_ATTACHMENTS: ["a"],
    }
    assert objects.skipped == {"StorageClass": 1}
    assert parse_cluster(json.dumps({"items": [NODE]}).encode()).others == {}


def test_further_resources_are_decoded_for_the_tables_that_read_them() -> None:
    cron_job = api_object("CronJob", "nightly", "batch/v1", spec={"schedule": "0 2 * * *"})
    theirs = api_object("CronJob", "theirs", "example.org/v1", spec={"schedule": "0 2 * * *"})
    items = [NODE, cron_job, theirs, api_object("Service", "s1"), api_object("Namespace", "shop")]
    objects = parse_cluster(json.dumps({"items": items}).encode())
    assert [one.name for one in objects.of(WATCHED_CRON_JOBS)] == ["nightly"]
    assert objects.unread([WATCHED_CRON_JOBS]) == {"CronJob.example.org": 1, "Service": 1}
    assert objects.unread([]) == {"CronJob.batch": 1, "CronJob.example.org": 1, "Service": 1}


def test_pods_that_only_name_their_priority_class_get_its_priority() -> None:
    def pod(name: str, **spec: Any) -> dict[str, Any]:
        return api_object("Pod", name, spec={"containers": [{}], **spec})

    items = [
        NODE,
        api_object("PriorityClass", "high", "scheduling.k8s.io/v1", value=1000),
        api_object("PriorityClass", "usual", "scheduling.k8s.io/v1", value=7, globalDefault=True),
        pod("named", priorityClassName="high"),
        pod("admitted", priorityClassName="high", priority=3),
        pod("without"),
        pod("system", priorityClassName="system-node-critical"),
    ]
    found = parse_cluster(json.dumps({"items": items}).encode())
    priorities = {one.name: one.priority for one in found.pods}
    assert priorities == {"named": 1000, "admitted": 3, "without": 7, "system": 2_000_001_000}
    bare = parse_cluster(json.dumps({"items": [NODE, pod("named", priorityClassName="high")]}).encode())
    assert [one.priority for one in bare.pods] == [0]


def test_items_of_a_list_of_one_kind_need_not_say_their_kind() -> None:
    def list_of(one: dict[str, Any]) -> dict[str, Any]:
        bare = {key: value for key, value in one.items() if key not in ("kind", "apiVersion")}
        return {"kind": f"{one['kind']}List", "apiVersion": one["apiVersion"], "items": [bare]}

    job = api_object("Job", "j1", "batch/v1")
    lists = parse_cluster(json.dumps({"kind": "List", "items": [list_of(NODE), list_of(job)]}).encode())
    assert lists == parse_cluster(json.dumps({"items": [NODE, job]}).encode())
    assert len(lists.nodes) == len(lists.jobs) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty; export one with kubectl get nodes,pods"),
        (b"NAME STATUS\nn1 Ready", "the table that kubectl prints for people: add -o json"),
        (b"[1, 2]", "not objects in JSON or YAML"),
        (b'{"items": [3]}', "not objects in JSON or YAML"),
        (b'{"items": ' + b"[" * 10**5, "not JSON of objects"),
        (b"{}", "no nodes among its 1 objects"),
        (b'{"kind": "List", "items": []}', "no nodes among its 0 objects"),
        (b'{"kind": "Deployment"}', r"no nodes among its 1 objects \(1 Deployment\)"),
        (json.dumps({"kind": "List", "items": [POD]}).encode(), "no nodes among its 1 objects"),
        (b'{"kind": "Node", "apiVersion": "v1"}', "Node cannot be read"),
    ],
)
def test_what_is_no_cluster_is_refused_with_the_way_out(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as refused:
        read_cluster_file(path)
    assert str(refused.value).startswith(f"cluster file {path}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["a: [", "a: !!python/object/apply:os.getcwd []", "[" * 500_000])
def test_bad_yaml_is_refused_on_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=r"not .*YAML of objects") as refused:
        read_cluster_file(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_file_of_powershell_is_read(written: Path, tmp_path: Path, encoding: str) -> None:
    other = tmp_path / "other.json"
    other.write_text(written.read_text(), encoding=encoding, newline="\r\n")
    assert read_cluster_file(other) == read_cluster_file(written)


def test_what_is_odd_about_a_file_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(NODE))
    remarks = read_cluster_file(path).remarks
    assert "it has no pods: every node counts as empty" in remarks[0]
    assert [record.getMessage() for record in caplog.records] == [f"cluster file {path}: {one}" for one in remarks]


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"No such file.*kubectl get nodes,pods,replicasets,jobs -A -o json"):
        read_cluster_file(tmp_path / "none.json")
    with pytest.raises(InputError, match=r"holds no file that ends in \.json"):
        read_cluster_file(tmp_path)
