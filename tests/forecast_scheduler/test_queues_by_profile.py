"""Each policy of a queue in each profile: who of seven pods get the room of four, in the dry run of a cluster file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.quota_queues.quota_queue_settings import FairOptions
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_pod
from tests.forecast_scheduler.test_dry_run import plan

NAMES = {"online": "forecast-scheduler", "gpu": "gpu-scheduler", "job": "job-scheduler"}
CARDS = "nvidia.com/gpu"
ROOM = 4

# Of the four of a, which came first, nobody says anything; those of b have a deadline; c is more important and last.
PLACED = {
    "fifo": ["a0", "a1", "a2", "a3"],
    "priority": ["a0", "a1", "a2", "c0"],
    "deadline": ["a0", "b0", "b1", "c0"],
    "drf": ["a0", "a1", "b0", "c0"],
}


@pytest.fixture(autouse=True)
def no_pod_counts_as_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FairOptions, "due_lead", -1e12)


def a_pod(
    name: str, profile: str, minute: int, *, priority: int = 0, deadline: str = "", **more: Any
) -> dict[str, Any]:
    """A core of a service's or job's pod, a card of a GPU pod."""
    said = {"forecast-scheduler.io/deadline": deadline} if deadline else {}
    metadata = {"namespace": f"team-{name[0]}", "creationTimestamp": f"2026-10-13T12:{minute:02d}:00Z"}
    pod = made_pod(
        name, scheduler=NAMES[profile], metadata=metadata | {"annotations": said} | more, priority=priority,
        cpu="100m" if profile == "gpu" else "1",
    )  # fmt: skip
    if profile == "gpu":
        pod["spec"]["containers"][0]["resources"] |= {"limits": {CARDS: "1"}}
        pod["spec"]["containers"][0]["resources"]["requests"][CARDS] = "1"
    return pod


def seven(profile: str) -> list[dict[str, Any]]:
    return [
        *(a_pod(f"a{i}", profile, i) for i in range(4)),
        *(a_pod(f"b{i}", profile, 10 + i, deadline="2h") for i in range(2)),
        a_pod("c0", profile, 20, priority=10),
    ]


def placed(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    objects: list[dict[str, Any]],
    *queues: dict[str, Any],
    profiles: str = "online,gpu,job",
) -> list[str]:
    """Names of the pods that get a node, of one that has room for four."""
    schedule = {
        "queues": list(queues), "longest_wait": 0, "preemption": {"enabled": False},
        "job": {"valley": {"enabled": False}},
    }  # fmt: skip
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump({"schedule": schedule}))
    node = made_node("node-a", cpu=str(ROOM), **{CARDS: str(ROOM)})
    report = plan(capfd, cluster_file(tmp_path, node, *objects), "--profile", profiles, "--config", str(config))
    return sorted(pod["name"] for pod in report["pods"] if pod["node"])


@pytest.mark.parametrize("profile", NAMES)
@pytest.mark.parametrize("order", PLACED)
def test_a_policy_holds_in_every_profile(
    profile: str, order: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    queue = {"name": "line", "profiles": [profile], "order": order, "most_per_turn": 1}
    assert placed(tmp_path, capfd, seven(profile), queue) == PLACED[order]
