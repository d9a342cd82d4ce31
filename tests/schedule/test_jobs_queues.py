"""Who goes first, who gets how much, who waits for whom and what happens when pods end, through a real API server."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.pod_groups.labels import GROUP_LABEL
from testing.clusters.job_world import JobsWorld, a_job, job_pod, jobs_process, queue, share_of, waits_with_reason
from testing.clusters.own_nodes import group, groups, our_node
from testing.servers.cluster_objects import ClusterWriter, Manifest, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.job_controller import JobController

TEAMS = {"team-cpu": (200, 100), "team-memory": (100, 1600), "team-both": (200, 800)}
"""Milli-cores and MiB of a pod."""

QUEUES = [queue("teams", "drf", namespaces=list(TEAMS)), queue("dates", "deadline")]


@pytest.fixture(scope="module")
def world(module_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobsWorld]:
    directory: Path = tmp_path_factory.mktemp("jobs")
    job = {"valley": {"enabled": False}}
    with ClusterWriter(module_plane) as writer:
        for name in TEAMS:
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        with JobsWorld(writer, jobs_process(module_plane, directory, job=job, queues=QUEUES)) as world:
            yield world


@pytest.mark.long
def test_owners_share_by_dominant_resource(world: JobsWorld) -> None:
    n_nodes, cpu, gib = 5, 20, 80
    n_each = {"team-cpu": 280, "team-memory": 160, "team-both": 280}  # a fifth more of each than is to fit
    big = [our_node(f"node-{i}", cpu=cpu, pods=1000) for i in range(n_nodes)]
    for one in big:
        one["status"]["allocatable"]["memory"] = one["status"]["capacity"]["memory"] = f"{gib}Gi"
    allocatable = {"cpu": float(n_nodes * cpu), "memory": float(n_nodes * gib * 1024)}

    def before() -> None:
        for team, (milli, mib) in TEAMS.items():  # who is first in line would take all, were it not for the shares
            world.writer.create_many(
                job_pod(f"pod-{i}", namespace=team, owner="work", cpu=f"{milli}m", memory=f"{mib}Mi")
                for i in range(n_each[team])
            )

    with world.nodes(*big, before=before):
        ideal = _drf(allocatable)
        n_ideal = {team: share / _dominant(team, allocatable) for team, share in ideal.items()}

        def is_full() -> bool:
            # Asked first, because it costs little.
            n_bound = world.process.metric("forecast_pod_scheduling_seconds_count")
            return n_bound > 0.9 * sum(n_ideal.values()) and _free(world, allocatable["cpu"]) < 0.1

        assert all(n_each[team] > 1.2 * n for team, n in n_ideal.items())
        world.awaits(is_full, n_ideal)
        shares = share_of(world.writer.list_all("pods"), allocatable)
        assert shares == pytest.approx(ideal, rel=0.05)


def _dominant(team: str, allocatable: dict[str, float]) -> float:
    """Share of one pod."""
    milli, mib = TEAMS[team]
    return max(milli / 1000 / allocatable["cpu"], mib / allocatable["memory"])


def _drf(allocatable: dict[str, float]) -> dict[str, float]:
    """Dominant shares by progressive filling, pod by pod: whoever has least gets the next one, until nothing fits."""
    free, shares = dict(allocatable), dict.fromkeys(TEAMS, 0.0)
    open_to = set(TEAMS)
    while open_to:
        team = min(open_to, key=lambda one: (shares[one], one))
        milli, mib = TEAMS[team]
        if milli / 1000 > free["cpu"] + 1e-9 or mib > free["memory"]:
            open_to.remove(team)
            continue
        free["cpu"] -= milli / 1000
        free["memory"] -= mib
        shares[team] += _dominant(team, allocatable)
    return shares


def _free(world: JobsWorld, cores: float) -> float:
    pods = [one for one in world.writer.list_all("pods") if one["spec"].get("nodeName")]
    return cores - sum(TEAMS[one["metadata"]["namespace"]][0] for one in pods) / 1000


def test_the_earliest_deadline_goes_first_and_misses_are_counted(world: JobsWorld) -> None:
    hours = list(range(1, 13))
    random.Random(8).shuffle(hours)
    missed = {"queue": "dates", "deadline": "1s"}

    def before() -> None:
        for hour in hours:  # one after the other: who came first would go first
            due = {"queue": "dates", "deadline": f"{hour}h"}
            world.writer.create(job_pod(f"due-{hour}h", cpu="1", annotations=due))

    with world.nodes(our_node("node-0", cpu=4), before=before):
        world.awaits(lambda: _bound(world, "due-") == {f"due-{hour}h" for hour in (1, 2, 3, 4)}, "no earliest first")
        counted = {name: world.process.metric(f"forecast_job_deadline_{name}_total") for name in ("met", "missed")}
        world.writer.create_many(job_pod(f"late-{i}", cpu="1", annotations=missed) for i in range(2))
        world.awaits(lambda: world.process.metric("forecast_job_deadline_missed_total") == counted["missed"] + 2)
        world.ends(world.pods()["due-1h"])
        world.awaits(lambda: world.process.metric("forecast_job_deadline_met_total") == counted["met"] + 1)
        # Whose deadline is over is not forgotten: it was the earliest.
        world.awaits(lambda: len(_bound(world, "late-") | _bound(world, "due-")) == 5)
        assert world.process.metric("forecast_job_deadline_missed_total") == counted["missed"] + 2


def test_a_group_of_job_pods_starts_whole(world: JobsWorld, module_plane: ControlPlane) -> None:
    with world.nodes(our_node("node-0", cpu=4), our_node("node-1", cpu=4)), groups(module_plane) as those:
        those.create(group("train", members=9))
        labels = {GROUP_LABEL: "train"}
        world.writer.create_many(job_pod(f"train-{i}", owner="train", cpu="1", labels=labels) for i in range(9))
        world.awaits(lambda: all(map(waits_with_reason, world.pods("train-").values())), "nobody says why")
        assert _bound(world, "train-") == set()
        with world.nodes(our_node("node-2", cpu=1)):
            world.awaits(lambda: len(_bound(world, "train-")) == 9)
        those.delete_all()


def test_pods_are_left_alone_until_their_gate_goes(world: JobsWorld) -> None:
    """As Kueue holds them; suspended Jobs have no pods at all."""
    with world.nodes(our_node("node-0")):
        held = world.writer.create(job_pod("held-0", gates=("kueue.x-k8s.io/admission",)))
        world.writer.create(job_pod("free-0"))
        world.awaits(lambda: _bound(world, "free-") == {"free-0"})
        now = world.pods()["held-0"]
        assert "nodeName" not in now["spec"] and now["status"]["conditions"][0]["reason"] == "SchedulingGated"
        world.writer.patch(held, {"spec": {"schedulingGates": None}})
        world.awaits(lambda: _bound(world, "held-") == {"held-0"})


def test_a_job_that_grows_gets_its_further_pods(world: JobsWorld, module_plane: ControlPlane) -> None:
    with world.nodes(our_node("node-0")), JobController(module_plane):
        job = world.writer.create(a_job("wide", parallelism=2, completions=8, indexed=True, suspend=True))
        world.writer.patch(job, {"spec": {"suspend": False}})
        world.awaits(lambda: len(_bound(world, "wide-")) == 2)
        world.writer.patch(job, {"spec": {"parallelism": 6}})
        world.awaits(lambda: len(_bound(world, "wide-")) == 6)
        index = Counter(name.split("-")[1] for name in _bound(world, "wide-"))
        assert index == Counter(map(str, range(6)))


def test_a_retry_avoids_the_node_that_failed_it(world: JobsWorld) -> None:
    """Everybody else prefers that node: the other one is nearly full."""
    sitting = [job_pod(f"sits-{i}", node="busy", cpu="1", status=running()) for i in range(5)]
    with world.nodes(our_node("empty", cpu=8), our_node("busy", cpu=8)):
        world.writer.create_many(sitting)
        first = world.writer.create(job_pod("try-1", owner="flaky"))
        world.awaits(lambda: _bound(world, "try-") == {"try-1"})
        assert world.pods()["try-1"]["spec"]["nodeName"] == "empty"
        world.ends(first, "Failed")
        world.writer.create(job_pod("other-1", owner="other"))
        world.awaits(lambda: _bound(world, "other-") == {"other-1"})
        world.writer.create(job_pod("try-2", owner="flaky"))
        world.awaits(lambda: _bound(world, "try-") == {"try-1", "try-2"})
        assert world.pods()["other-1"]["spec"]["nodeName"] == "empty"
        assert world.pods()["try-2"]["spec"]["nodeName"] == "busy"


def test_what_has_ended_makes_room_although_its_pods_are_kept(world: JobsWorld) -> None:
    with world.nodes(our_node("node-0", cpu=4)):
        first = [job_pod(f"first-{i}", owner="first", cpu="1") for i in range(4)]
        made: list[Manifest] = world.writer.create_many(first)
        world.awaits(lambda: len(_bound(world, "first-")) == 4)
        world.writer.create_many(job_pod(f"next-{i}", owner="next", cpu="1") for i in range(4))
        world.awaits(lambda: all(map(waits_with_reason, world.pods("next-").values())))
        world.ends(made[0], "Failed")
        for one in made[1:]:
            world.ends(one)
        world.awaits(lambda: len(_bound(world, "next-")) == 4)
        assert len(world.pods("first-")) == 4


def _bound(world: JobsWorld, prefix: str) -> set[str]:
    return {name for name, one in world.pods(prefix).items() if one["spec"].get("nodeName")}
