"""`schedule --dry-run --cluster FILE` from beginning to end, and what the command refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from forecast_scheduler.cli import run
from forecast_scheduler.settings.document import Settings
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_pod
from tests.forecast_scheduler.recorded_evening import recorded_evening
from tests.forecast_scheduler.test_dry_run import by_name, plan, with_objects


def _decided(capfd: pytest.CaptureFixture[str], cluster: Path, *arguments: str) -> dict[str, tuple[str | None, str]]:
    """Node and message by name of the pod, in the order in which they were decided on."""
    return {pod["name"]: (pod["node"], pod["message"]) for pod in plan(capfd, cluster, *arguments)["pods"]}


def test_higher_priority_goes_first_and_others_pods_and_gated_ones_stay(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = cluster_file(
        tmp_path,
        made_node("node-a", cpu="1"),
        made_pod("low"),
        made_pod("high", priority=1000),
        made_pod("elses", scheduler="default-scheduler"),
        made_pod("held", priority=2000, schedulingGates=[{"name": "quota"}]),
    )
    found = _decided(capfd, cluster)
    assert list(found) == ["high", "low", "held"]  # those that a gate holds come last: the queue does not try them
    assert found["held"] == (None, "waits for its gates: quota")
    assert found["high"] == ("node-a", "")
    assert found["low"][0] is None


def test_people_get_a_table(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    label = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}
    cluster = cluster_file(
        tmp_path, made_node("node-a", cpu="1"), made_pod("one[red]", metadata=label), made_pod("two"), made_pod("zoo"),
        made_pod("work", cpu="8", scheduler="job-scheduler"),
    )  # fmt: skip
    command = ["schedule", "--dry-run", "--cluster", str(cluster), "--profile", "online,job"]
    assert run([*command, "--models", str(tmp_path / "none")]) == 0
    text = capfd.readouterr().out
    assert "shop/one[red]" in text and "0/1 nodes are available: 1 Insufficient cpu" in " ".join(text.split())
    assert "1 of 4 pods would be bound" in text and "0 of 1 waiting pods" in text
    assert "PodGroup shop/train: 0 of 1 waiting members" in text
    assert "gangs: PodGroups shop/train are not in the file: their pods wait" in text
    assert run(["schedule", "--dry-run", "--cluster", str(cluster), "--scheduler-name", "nobody"]) == 0
    assert "no pod waits for the scheduler nobody" in capfd.readouterr().out


def test_the_domain_and_priorities_decide_which_nodes_pods_get(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = cluster_file(
        tmp_path, made_node("plain", domain=None), made_node("blue", domain="blue"), made_pod("cart")
    )
    ((node, reason),) = _decided(capfd, cluster).values()
    assert node is None
    assert reason.startswith("0/2 nodes are available: 2 node(s) belonged to another scheduling domain")
    assert _decided(capfd, cluster, "--domain", "", "--profile", "online") == {"cart": ("plain", "")}
    assert _decided(capfd, cluster, "--domain", "blue") == {"cart": ("blue", "")}
    assert _decided(capfd, cluster, "--share-nodes", "") == {"cart": ("plain", "")}
    pods = [made_pod("low", cpu="100m", priority=-1), made_pod("normal", cpu="100m")]
    options = with_objects(recorded_evening(tmp_path), tmp_path, *pods)
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump({"schedule": {"colocation": {"ceiling": 0.001}}}))
    capfd.readouterr()
    assert run(["schedule", "--dry-run", *options, "--json", "-", "--config", str(config)]) == 0
    found = by_name(json.loads(capfd.readouterr().out))
    assert found["normal"]["node"] in ("node-0", "node-1") and found["low"]["node"] is None
    assert "predicted load of cpu would pass 0.1 % of capacity within 24 h" in found["low"]["message"]


@pytest.mark.parametrize(("arguments", "enabled"), [((), False), (("--shards",), True), (("--no-shards",), False)])
def test_shards_are_for_those_who_ask(
    arguments: tuple[str, ...], enabled: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served: list[Settings] = []
    monkeypatch.setattr(
        "forecast_scheduler.commands.schedule.schedule_serve.serve",
        lambda shell, settings, inputs: served.append(settings),
    )
    assert run(["schedule", *arguments]) == 0
    assert [one.schedule.shards.enabled for one in served] == [enabled]
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump({"schedule": {"shards": {"enabled": True, "count": 32}}}))
    assert run(["schedule", *arguments, "--config", str(config)]) == 0
    assert (
        served[1].schedule.shards.enabled is (arguments != ("--no-shards",)) and served[1].schedule.shards.count == 32
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--profile", "tpu"], "there is no profile 'tpu': there is online, gpu, job"),
        (["--profile", "online,tpu"], "there is no profile 'tpu': there is online, gpu, job"),
        (["--profile", "online,online"], "each profile may be named once"),
        (["--profile", ","], "--profile ',' names no profile: there is online, gpu, job"),
        (["--cluster", "x.json"], "cannot be bound: pass --dry-run, too"),
        (["--json", "-"], "--json and --output are for a cluster from a file"),
        (["--dry-run", "--cluster", "x.json", "--kubeconfig", "y"], "name two clusters"),
        (["--share-nodes", "forecast-scheduler"], "is the domain of this scheduler"),
        (["--shards", "--no-leader-elect"], "shards.enabled needs leader_election.enabled"),
        (["--dry-run", "--cluster", "nowhere.json"], "nowhere.json"),
        (["--at", "2026-10-13T17:00", "--dry-run"], "--at and --history are for a cluster from a file"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["schedule", *arguments]) == 2
    error = capfd.readouterr().err.strip()
    assert message in error and error.startswith("forecast-scheduler: ") and "\n" not in error
