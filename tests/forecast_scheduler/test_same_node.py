"""`explain`, the dry run, the cycle of the profile and the extender name the same node for the same pod."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from forecast_scheduler.cli import run
from forecast_scheduler.commands.command_options import parse_moment
from forecast_scheduler.commands.extender_setup import open_extender
from forecast_scheduler.commands.policy.followed_policies import read_policies
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.feature_options import schedule_policy, schedule_policy_defaults
from kube.client.cluster_access import CURRENT_CLUSTER
from placement.feasibility import feasibility
from placement.filters.catalogue import standard_filters
from placement.index.index import INDEXED_KINDS
from placement.policies.policy import OnePolicyForAll
from placement.scores.default_scores import expected_choice
from profiles.schedule_tables import schedule_tables
from scheduler.assembly import assembled_profiles
from scheduler.binding.bind_plugins import DryRun
from scheduler.cycle.placing import UnitPlacer
from scheduler.placing_core import placing_core
from scheduler.queue.queued_pods import Popped, QueuedPodInfo
from scorer.highest_peak import share_of
from tests.forecast_scheduler.made_cluster import DOMAIN, cluster_file, made_node, made_object, made_pod, seated
from tests.forecast_scheduler.recorded_evening import MOMENT, Evening, recorded_evening

GPU = {"nvidia.com/gpu": "4"}
POLICIES = {"policies": {"packed": {"scores": {"weights": {"most_allocated": 1}}, "filters": ["Domain"]}}}
PROFILES = "online,gpu,job"


def owned(name: str, service: str, **more: Any) -> dict[str, Any]:
    """A waiting pod of a service that the model knows."""
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": service, "uid": service, "controller": True}
    return made_pod(name, metadata={"ownerReferences": [reference], **more.pop("metadata", {})}, **more)


def with_gpus(pod: dict[str, Any], n: int) -> dict[str, Any]:
    amounts = {"requests": {"cpu": "1", "nvidia.com/gpu": str(n)}, "limits": {"nvidia.com/gpu": str(n)}}
    pod["spec"]["containers"][0]["resources"] = amounts
    return pod


def tainted(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "spec": {"taints": [{"key": "only", "value": "gpu", "effect": "NoSchedule"}]}}


TOLERATES = [{"key": "only", "operator": "Exists"}]
PODS: dict[str, Callable[[], dict[str, Any]]] = {
    "online": lambda: owned("online", "search", cpu="500m"),
    "large": lambda: owned("large", "search", cpu="6"),
    "unknown service": lambda: made_pod("unknown", cpu="2"),
    "policy": lambda: owned(
        "policy", "search", cpu="500m", metadata={"annotations": {"forecast-scheduler.io/policy": "packed"}}
    ),
    "opt-out": lambda: made_pod("out", cpu="1", metadata={"annotations": {"forecast-scheduler.io/opt-out": "true"}}),
    "gpu": lambda: with_gpus(made_pod("gpu", scheduler="gpu-scheduler", tolerations=TOLERATES), 2),
    "job": lambda: made_pod("job", cpu="1", scheduler="job-scheduler"),
    "too large": lambda: made_pod("giant", cpu="90"),
    "kube-scheduler": lambda: owned("kube", "search", cpu="500m", scheduler="default-scheduler"),
    "kube-scheduler, large": lambda: owned("kube-large", "search", cpu="6", scheduler="default-scheduler"),
}


def decision_of_cycle(
    cluster: Path, models: Path, moment: datetime | None, settings: Settings, name: str
) -> tuple[str | None, float | None]:
    """The node of the pod shop/`name`, popped alone, and the expected peak there as a share of capacity."""
    provider = read_policies(settings, CURRENT_CLUSTER, schedule_policy_defaults(settings))
    policies = provider or OnePolicyForAll(schedule_policy(settings))
    inputs = Inputs(cluster, models=str(models), at=moment)
    prepared = prepare_scorer(settings, inputs, policies=provider)
    scorer = prepared.scorer
    tables = schedule_tables(scorer, settings.schedule, settings.node_rules)
    profiles = assembled_profiles(settings.schedule, policies, tables, DryRun(), clock=scorer.tables.clock)
    core = placing_core(scorer, tables, profiles, settings.schedule, clock=scorer.tables.clock)
    with prepared.following(INDEXED_KINDS):
        prepared.background.look_for_model()
        scorer.tables.tick()
        tables.common.keep_up()
        with scorer.tables.changing() as cluster_tables:
            level = scorer.tables.level()[0]
            placer = UnitPlacer(tables.view, cluster_tables, level, until=cluster_tables.now + 60)
            cycle = core.cycle(cluster_tables, preempt=lambda seats: False, withdraw=lambda pod: None)
            pod = scorer.find_pod("shop", name)
            decisions = cycle.run(Popped("unit", False, (QueuedPodInfo(pod, "unit", 0.0),)), placer)
        node = decisions.placed[0][1] if decisions.placed else None
        return node, None if node is None else share_of(scorer.expected_peak(pod, node))


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(POLICIES))
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump({"policies": {"file": str(policies)}}))
    return config


def cluster_with(evening: Evening, tmp_path: Path, pod: dict[str, Any]) -> Path:
    """Domain A: both recorded nodes, three more of several sizes, two GPU nodes. Without a domain: three nodes."""
    document = json.loads(evening.cluster.read_text())
    for item in document["items"]:
        if item["kind"] == "Node":
            item["metadata"].setdefault("labels", {})[DOMAIN] = "forecast-scheduler"
    return cluster_file(
        tmp_path,
        *document["items"],
        *(made_node(f"own-{i}", cpu=cpu) for i, cpu in enumerate(("4", "8", "16"))),
        *(tainted(made_node(f"gpu-{i}", cpu="16", **GPU)) for i in range(2)),
        *(made_node(f"other-{i}", cpu=cpu, domain=None) for i, cpu in enumerate(("8", "16", "4"))),
        seated(made_pod("sits-0", cpu="2"), "own-2"),
        seated(made_pod("sits-1", cpu="3", scheduler="default-scheduler"), "other-1"),
        seated(with_gpus(made_pod("sits-2", scheduler="gpu-scheduler"), 1), "gpu-1"),
        made_object("PodDisruptionBudget", "b", "policy/v1", spec={"selector": {}}),
        pod,
    )


def explained(capfd: pytest.CaptureFixture[str], pod: str, *options: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run(["explain", pod, *options, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def dry_run_node(capfd: pytest.CaptureFixture[str], *options: str) -> str | None:
    capfd.readouterr()
    assert run(["schedule", "--dry-run", *options, "--json", "-"]) == 0
    (pod,) = json.loads(capfd.readouterr().out)["pods"]
    node: str | None = pod["node"]
    return node


def settings_of(config: Path) -> Settings:
    policies = yaml.safe_load(config.read_text())["policies"]
    return with_options(Settings(), {"policies": policies, "schedule": {"profiles": PROFILES.split(",")}})


def node_of_extender(cluster: Path, models: Path, settings: Settings, name: str) -> tuple[str, str]:
    """Of those that pass kube-scheduler's and our filters: what kube-scheduler would take, and what has most points."""
    inputs = Inputs(cluster, models=str(models), at=parse_moment(MOMENT))
    with open_extender(settings, inputs) as live:
        live.background.look_for_model()
        assert live.scorer is not None
        live.scorer.tables.tick()
        pod = live.scorer.find_pod("shop", name)
        view = live.extender._view
        passing = feasibility(pod, view, standard_filters()).nodes
        nodes = list(live.extender.filter(pod, passing).nodes)
        points = live.extender.prioritize(pod, nodes)
        rows = np.array([view.state.row_of[node] for node in nodes])
        of = np.array([points.get(node, 0) for node in nodes])
        return nodes[expected_choice(pod, view, rows, of, 1)], nodes[int(of.argmax())]


@pytest.mark.parametrize("kind", [kind for kind in PODS if not kind.startswith("kube")])
def test_a_profile_its_dry_run_and_its_explanation_choose_the_same_node(
    kind: str, evening: Evening, tmp_path: Path, settings_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pod = PODS[kind]()
    cluster, name = cluster_with(evening, tmp_path, pod), pod["metadata"]["name"]
    options = ["--cluster", str(cluster), "--at", MOMENT, "--models", str(evening.models)]
    options += ["--profile", PROFILES, "--config", str(settings_file)]
    told = explained(capfd, f"shop/{name}", *options)
    chosen = told["judgement"]["node"]
    assert chosen == dry_run_node(capfd, *options)
    settings = settings_of(settings_file)
    assert chosen == decision_of_cycle(cluster, evening.models, parse_moment(MOMENT), settings, name)[0]
    profile = {"gpu-scheduler": "gpu", "job-scheduler": "job"}.get(pod["spec"]["schedulerName"], "online")
    assert told["judgement"]["component"].startswith(f"profile {profile} of `schedule`")
    by_filter = {one["filter"]: one["nodes"] for one in told["filters"]["rejections"]}
    assert by_filter["Domain"] == 3
    if kind == "too large":
        assert chosen is None and "Insufficient cpu" in told["judgement"]["held"]
        assert by_filter["NodeResourcesFit"] == 10
        return
    assert told["nodes"][0]["node"] == chosen and "chosen" in told["nodes"][0]["notes"]
    assert told["policy"] == ("packed" if kind == "policy" else "settings")
    if kind == "gpu":
        assert chosen.startswith("gpu-")


@pytest.mark.parametrize("kind", [kind for kind in PODS if kind.startswith("kube")])
def test_a_pod_for_kube_scheduler_is_judged_as_the_extender_answers(
    kind: str, evening: Evening, tmp_path: Path, settings_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pod = PODS[kind]()
    cluster, name = cluster_with(evening, tmp_path, pod), pod["metadata"]["name"]
    options = ["--cluster", str(cluster), "--at", MOMENT, "--models", str(evening.models)]
    told = explained(capfd, f"shop/{name}", *options, "--config", str(settings_file))
    taken, most_points = node_of_extender(cluster, evening.models, settings_of(settings_file), name)
    assert told["nodes"][0]["node"] == taken == most_points
    assert taken.startswith("other-")
    assert told["judgement"]["component"].startswith("the extender beside kube-scheduler")
    assert any("kube-scheduler's own configuration" in what for what in told["not_applied"])


def test_a_pod_of_an_unknown_scheduler_is_said_to_be_nobodys(
    evening: Evening, tmp_path: Path, settings_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pod = owned("strange", "search", scheduler="volcano")
    options = ["--cluster", str(cluster_with(evening, tmp_path, pod)), "--at", MOMENT, "--models", str(evening.models)]
    told = explained(capfd, "shop/strange", *options)
    assert told["judgement"]["component"].startswith("no component of ours places it (schedulerName volcano)")
    assert told["nodes"][0]["node"].startswith("other-")
    assert run(["explain", "shop/strange", *options]) == 0
    assert "placed by: no component of ours places it" in capfd.readouterr().out


def test_pods_that_wait_before_it_are_placed_first(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = made_pod("first", cpu="2", priority=10)
    cluster = cluster_file(
        tmp_path, made_node("node-a", cpu="2"), made_node("node-b", cpu="2"), first, made_pod("own", cpu="2")
    )
    options = ["--cluster", str(cluster), "--models", str(tmp_path / "none")]
    told = explained(capfd, "shop/own", *options)
    assert told["judgement"]["ahead"] == 1
    assert told["judgement"]["node"] != explained(capfd, "shop/first", *options)["judgement"]["node"]
    assert {one["filter"]: one["nodes"] for one in told["filters"]["rejections"]} == {"NodeResourcesFit": 1}


def test_a_running_pod_and_a_manifest_are_judged_as_if_they_waited(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = seated(made_pod("runs", cpu="2"), "node-a")
    cluster = cluster_file(tmp_path, made_node("node-a", cpu="2"), made_node("node-b", cpu="1"), runs)
    options = ["--cluster", str(cluster), "--models", str(tmp_path / "none")]
    told = explained(capfd, "shop/runs", *options)
    assert told["judgement"]["node"] == "node-a"  # its own requests do not keep it out
    assert any("judged as if it waited" in note for note in told["nodes"][0]["notes"])
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(yaml.safe_dump({**made_pod("new", cpu="1"), "metadata": {"name": "new", "namespace": "shop"}}))
    told = explained(capfd, str(manifest), *options)
    assert told["judgement"]["node"] == "node-b"
    assert "admission" in {gap["what"] for gap in told["not_covered"]}
