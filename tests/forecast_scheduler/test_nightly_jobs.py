"""Six evening services are released at 04:00, while half of the nodes run the pods of a CronJob from 02:00 to 05:00.

All commands that place or judge pods read the same cluster file and the same model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from forecast_scheduler.cli import run
from forecast_scheduler.commands.extender_setup import open_extender
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, open_scorer
from forecast_scheduler.settings.document import Settings, with_options
from kube.objects.objects import PodInfo
from scorer.highest_peak import share_of
from scorer.scorer import Scorer
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_object, made_pod, seated
from tests.scorer.live_cluster import at
from tests.scorer.nightly_jobs import job_of_night, nightly_model

CORES = {"node-0": 40, "node-1": 46, "node-2": 42, "node-3": 50}
"""Of different sizes, so that no two nodes are equally good."""

NODES = list(CORES)
WITH_JOBS = NODES[:2]
MOMENT = "2026-05-19T04:00:00+00:00"

Placed = dict[str, tuple[str, float]]
"""By pod: its node, and the predicted peak of that node once all pods are there, as a share of capacity."""


def time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def pod(name: str, owner: dict[str, str], on: str = "", **metadata: Any) -> dict[str, Any]:
    references = [{**owner, "controller": True}]
    metadata = {"creationTimestamp": time(at(2)), "ownerReferences": references} | metadata
    made = made_pod(name, cpu="500m", metadata=metadata)
    return seated(made, on, started=time(at(2))) if on else made


def evening_pod(number: int) -> dict[str, Any]:
    """Larger services wait for longer, and so go first."""
    replica_set = {"kind": "ReplicaSet", "name": f"service-{number}-7d9f", "uid": f"rs-{number}"}
    created = time(at(3.9) - number)
    return pod(f"new-{number}", replica_set, labels={"pod-template-hash": "7d9f"}, creationTimestamp=created)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("night")
    Registry(str(folder / "models")).publish(artefact_of(nightly_model(), datetime(2026, 5, 19, tzinfo=UTC)))
    of_night = job_of_night()
    cron_job = {"kind": "CronJob", "name": "nightly", "uid": "c", "controller": True}
    metadata = {"uid": of_night.uid, "creationTimestamp": time(at(2)), "ownerReferences": [cron_job]}
    job = made_object("Job", of_night.name, "batch/v1", metadata=metadata, spec={})
    owner = {"kind": "Job", "name": of_night.name, "uid": of_night.uid}
    running = [pod(f"{of_night.name}-{name}-{i}", owner, name) for name in WITH_JOBS for i in range(4)]
    nodes = [made_node(name, cpu=str(cores), memory=str(cores)) for name, cores in CORES.items()]
    cluster_file(folder, *nodes, job, *running, *(evening_pod(number) for number in reversed(range(6))))
    return Inputs(folder / "cluster.json", models=str(folder / "models"), at=datetime.fromisoformat(MOMENT))


def options(inputs: Inputs) -> list[str]:
    return ["--cluster", str(inputs.cluster), "--models", str(inputs.models), "--at", MOMENT]


def one_after_the_other(scorer: Scorer, best_of: Callable[[PodInfo], str]) -> Placed:
    nodes = {}
    for number in reversed(range(6)):
        waiting = scorer.find_pod("shop", f"new-{number}")
        nodes[waiting.name] = best_of(waiting)
        scorer.charge_provisionally(waiting, nodes[waiting.name], seconds=600.0)
    found = {}
    for name, on in nodes.items():
        share = share_of(scorer.expected_peak(scorer.find_pod("shop", name), on))
        assert share is not None
        found[name] = on, share
    return found


@contextmanager
def opened_scorer(inputs: Inputs) -> Iterator[Scorer]:
    with open_scorer(Settings(), inputs) as (scorer, background):
        background.look_for_model()
        scorer.tables.tick()
        yield scorer


def by_the_scorer(inputs: Inputs) -> Placed:
    with opened_scorer(inputs) as scorer:

        def best(waiting: PodInfo) -> str:
            scored = scorer.score(waiting, NODES)
            return max(zip(scored.ranking, scored.nodes, strict=True))[1]

        return one_after_the_other(scorer, best)


def by_the_extender(inputs: Inputs) -> Placed:
    settings = with_options(Settings(), {"extender": {"domain": "forecast-scheduler"}})
    with open_extender(settings, inputs) as live:
        live.background.look_for_model()
        assert live.scorer is not None
        live.scorer.tables.tick()

        def best(waiting: PodInfo) -> str:
            passing = list(live.extender.filter(waiting, NODES).nodes)
            points = live.extender.prioritize(waiting, passing)
            live.extender.settle()
            return max(passing, key=lambda name: points.get(name, 0))

        return one_after_the_other(live.scorer, best)


def by_the_online_profile(inputs: Inputs, profiles: str, to: Path) -> Placed:
    command = ["schedule", "--dry-run", "--profile", profiles, *options(inputs), "--json", str(to)]
    assert run(command) == 0
    return {one["name"]: (one["node"], one["peak_share"]) for one in json.loads(to.read_text())["pods"]}


def test_every_command_spreads_evening_services_over_nodes_with_jobs_and_without(
    inputs: Inputs, tmp_path: Path
) -> None:
    found = {
        "scorer": by_the_scorer(inputs),
        "extender": by_the_extender(inputs),
        "online": by_the_online_profile(inputs, "online", tmp_path / "online.json"),
        "online,job": by_the_online_profile(inputs, "online,job", tmp_path / "jobs.json"),
    }
    for command, placed in found.items():
        on_nodes_with_jobs = sum(on in WITH_JOBS for on, _ in placed.values())
        assert 2 <= on_nodes_with_jobs <= 4, f"{command}: {placed}"
        assert {name: on for name, (on, _) in placed.items()} == {
            name: on for name, (on, _) in found["scorer"].items()
        }, command
        for name, (_, share) in placed.items():
            assert share == pytest.approx(found["scorer"][name][1], rel=0.01), command
