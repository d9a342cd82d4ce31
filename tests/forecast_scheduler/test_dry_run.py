"""What `schedule --dry-run --cluster FILE` covers beyond single pods, and what it says that it does not cover."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
from forecast_scheduler.settings.document import Settings
from kube.decoding.decoding import WATCHED
from profiles.schedule_tables import schedule_tables
from scorer.scorer import Scorer
from tests.forecast_scheduler.made_cluster import DOMAIN, cluster_file, made_node, made_object, made_pod, seated
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening

GROUP = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}


def plan(capfd: pytest.CaptureFixture[str], cluster: Path, *arguments: str) -> dict[str, Any]:
    """The JSON report of a dry run, without a model unless one is named."""
    capfd.readouterr()
    models = () if "--models" in arguments else ("--models", str(cluster.with_name("no-models")))
    assert run(["schedule", "--dry-run", "--cluster", str(cluster), *models, "--json", "-", *arguments]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {pod["name"]: pod for pod in report["pods"]}


def gaps(report: dict[str, Any]) -> dict[str, str]:
    return {gap["what"]: gap["because"] for gap in report["not_covered"]}


def pod_group(minimum: int) -> dict[str, Any]:
    return made_object("PodGroup", "train", "scheduling.x-k8s.io/v1alpha1", spec={"minMember": minimum})


def test_preemption_names_whom_it_evicts_and_where_the_pod_goes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_file(
        tmp_path,
        made_node("node-a", cpu="2"),
        made_node("node-b", cpu="2"),
        seated(made_pod("cheap", cpu="2"), "node-a"),
        seated(made_pod("dear", cpu="2", priority=50), "node-b"),
        made_object("PriorityClass", "urgent", "scheduling.k8s.io/v1", value=100),
        made_pod("urgent", cpu="2", priorityClassName="urgent"),
    )
    report = plan(capfd, cluster)
    (urgent,) = report["pods"]
    assert (urgent["node"], urgent["evicts"]) == ("node-a", ["shop/cheap"])
    assert "none protects the pods to be evicted" in gaps(report)["disruption budgets"]
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["schedule", "--dry-run", "--cluster", str(cluster), "--models", str(tmp_path / "none")]) == 0
    assert "evicts shop/cheap" in capfd.readouterr().out


def test_what_is_odd_about_the_file_is_in_the_report(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A remark on the file is a warning, too; an annotation that names no policy is a gap, with policies or without."""
    pod = made_pod("cart")
    pod["metadata"]["annotations"] = {"forecast-scheduler.io/policy": "batsh"}
    node = made_node("node-a")
    policies = tmp_path / "policies.yaml"
    policies.write_text("policies: {batch: {}}\n", encoding="utf-16")
    cluster = cluster_file(tmp_path, node, node, pod, seated(made_pod("lost"), "node-b"))
    without = plan(capfd, cluster)
    with_policies = plan(capfd, cluster, "--policies", str(policies))
    assert "shop/cart names 'batsh', and no policies are given" in gaps(without)["policies"]
    assert "no such policy (there are settings, batch)" in gaps(with_policies)["policies"]
    twice, lost = without["cluster_file"]
    assert "Node node-a" in twice and "shop/lost" in lost and "node-b" in lost
    assert run(["schedule", "--dry-run", "--cluster", str(cluster), "--models", str(tmp_path / "none")]) == 0
    assert lost in capfd.readouterr().err


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


def with_objects(evening: Evening, tmp_path: Path, *objects: dict[str, Any]) -> list[str]:
    """The evening with its nodes in our domain and further objects, as options of the command."""
    document = json.loads(evening.cluster.read_text())
    for item in document["items"]:
        if item["kind"] == "Node":
            item["metadata"].setdefault("labels", {})[DOMAIN] = "forecast-scheduler"
    cluster = cluster_file(tmp_path, *document["items"], *objects)
    options = evening.options()
    options[options.index("--cluster") + 1] = str(cluster)
    return options


def test_a_job_that_may_wait_is_told_until_when(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = {"forecast-scheduler.io/latest-start": "14h", "forecast-scheduler.io/expected-run": "1h"}
    metadata = {"annotations": said, "creationTimestamp": "2026-10-13T16:59:00Z"}
    patient = made_pod("patient", cpu="4", scheduler="job-scheduler", metadata=metadata)
    hurried = made_pod("hurried", cpu="1", scheduler="job-scheduler")
    options = with_objects(evening, tmp_path, patient, hurried)
    capfd.readouterr()
    assert run(["schedule", "--dry-run", "--profile", "online,job", *options, "--json", "-"]) == 0
    found = by_name(json.loads(capfd.readouterr().out))
    assert found["hurried"]["node"] in ("node-0", "node-1") and found["hurried"]["profile"] == "job"
    # The evening's peak is at 20:00: the plan is by the clock of --at, not by today's.
    assert found["patient"]["node"] is None
    assert "2026-10-13T21:00:00+00:00" <= found["patient"]["waits_until"] <= "2026-10-14T06:59:00+00:00"
    assert found["patient"]["message"]


def test_trainings_that_the_tide_would_shrink_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gpu = {"nvidia.com/gpu": "1"}

    def gpu_pod(name: str, role: str, owner: str, **spec: Any) -> dict[str, Any]:
        annotations = {"forecast-scheduler.io/tide": role} if role else {}
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": f"StatefulSet-{owner}"}
        metadata = {
            "annotations": annotations,
            "ownerReferences": [{**reference, "controller": True}],
            "creationTimestamp": "2026-10-13T16:59:00Z",
        }
        pod = made_pod(name, scheduler="gpu-scheduler", metadata=metadata, **spec)
        pod["spec"]["containers"][0]["resources"] = {"requests": gpu, "limits": gpu}
        return pod

    template = {"metadata": {"annotations": {"forecast-scheduler.io/tide": "training"}}, "spec": {"containers": [{}]}}
    elastic = {"forecast-scheduler.io/min-replicas": "1", "forecast-scheduler.io/max-replicas": "4"}
    training = made_object(
        "StatefulSet", "train", "apps/v1", metadata={"annotations": elastic}, spec={"replicas": 4, "template": template}
    )
    cluster = cluster_file(
        tmp_path,
        made_node("gpu-a", **gpu | {"nvidia.com/gpu": "4"}),
        training,
        *(seated(gpu_pod(f"train-{i}", "training", "train"), "gpu-a") for i in range(4)),
        gpu_pod("serve-0", "inference", "serve"),
    )
    report = plan(capfd, cluster, "--profile", "gpu", "--at", "2026-10-13T17:00")
    (move,) = report["tide"]["moves"]
    assert (move["training"], move["kind"]) == ("shop/StatefulSet/train", "shrink")
    assert move["after"] < move["before"] == 4


def test_what_the_file_lacks_is_listed_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    volume = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    card = [{"name": "gpu", "resourceClaimName": "card"}]
    lacking = cluster_file(
        tmp_path,
        made_node("node-a"),
        made_pod("mounts", volumes=volume),
        made_pod("claims", scheduler="gpu-scheduler", resourceClaims=card),
        made_pod("member", metadata=GROUP),
        made_pod("theirs", scheduler="default-scheduler"),
        made_object("Service", "cart", "v1"),
        {**made_node("virtual"), "metadata": {"name": "virtual", "labels": {"type": "virtual-kubelet"}}},
        {**made_pod("manifest"), "metadata": {"name": "manifest", "namespace": "shop"}},
    )
    report = plan(capfd, lacking, "--profile", "online,job,gpu")
    found = gaps(report)
    assert "shop/data" in found["volumes"]
    assert found["ResourceClaims"]
    assert "shop/train" in found["gangs"]
    assert found["other schedulers"] == "1 pods wait for default-scheduler: where they go is not decided here"
    assert "shop/manifest" in found["admission"] and "virtual are virtual nodes" in found["providers"]
    assert {"forecast", "live usage", "storms"} <= found.keys()
    assert report["objects_not_read"] == {"Service": 1}
    whole = cluster_file(
        tmp_path,
        made_node("node-a"),
        made_pod("mounts", volumes=volume),
        made_object("PersistentVolumeClaim", "data", "v1", spec={"volumeName": "pv"}, status={"phase": "Bound"}),
        made_object("PersistentVolume", "pv", "v1", spec={"capacity": {"storage": "1Gi"}}),
        made_pod("member", metadata=GROUP),
        pod_group(1),
        made_object("CronJob", "nightly", "batch/v1", spec={"schedule": "0 2 * * *"}),
    )
    assert gaps(plan(capfd, whole, "--profile", "online,job")).keys() == {"forecast", "live usage"}


def test_storms_are_foreseen_and_nothing_is_missing_with_forecast_and_usage(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pod = {"spec": {"schedulerName": "job-scheduler", "containers": [{"resources": {"requests": {"cpu": "100m"}}}]}}
    job = {"spec": {"parallelism": 200, "completions": 200, "template": pod}}
    spec = {"schedule": "30 17 * * *", "jobTemplate": job}
    options = with_objects(evening, tmp_path, made_object("CronJob", "nightly", "batch/v1", spec=spec))
    capfd.readouterr()
    assert run(["schedule", "--dry-run", "--profile", "online,job", *options, "--json", "-"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert [(one["start"][:16], one["pods"]) for one in report["storms"]] == [("2026-10-13T17:30", 200)]
    assert "storms" not in gaps(report)
    options = with_objects(evening, tmp_path, made_pod("cart-new", cpu="100m"))
    capfd.readouterr()
    assert run(["schedule", "--dry-run", *options, "--json", "-"]) == 0
    assert gaps(json.loads(capfd.readouterr().out)) == {}


def test_the_documented_export_names_every_kind_that_the_tables_read() -> None:
    text = (Path(__file__).parents[2] / "docs" / "use" / "scheduling.md").read_text()
    lines = re.findall(r"""kinds=['"](?:\$kinds\|)?([^'"]+)['"]""", text)
    captured = re.compile("|".join(lines))
    settings = Settings().schedule.model_copy(update={"profiles": ["online", "gpu", "job"]})
    world = schedule_tables(Scorer(), settings, Settings().node_rules)
    read = [*(one.watched for one in world.subscriptions()), *WATCHED.values()]
    names = [f"{one.plural}.{one.group}" if one.group else one.plural for one in read]
    assert len(names) > 15
    assert [name for name in names if not captured.fullmatch(name)] == []
