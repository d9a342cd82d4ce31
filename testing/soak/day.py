"""What happens in one simulated day, in order, by the simulated hour. Each event waits until it has had its effect.

 0  yesterday's jobs, gangs and trainings are cleared away; the model is a day older
 2  the nightly training; everybody takes the new model
 4  releases of a third of the services
 6  scale-up of a third of the services
 8  two nodes fail and are deleted; at 10 they come back
12  gangs, one of which fits nowhere, and pods with cards
13  Prometheus is gone; at 14 it is back
16  a corrupt model is published and refused, then rolled back
18  storms of jobs, one with a deadline, and releases; the API server restarts in their midst
21  on the first day: kill -9 of the replica that leads, in a burst
22  scale-down
23  all settles, and is looked at (testing/soak/settled.py)
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from forecast.model_artefact import artefact_of, model_of
from forecast.published_models import Registry
from testing.clusters.gpu_nodes import gpu_pod
from testing.clusters.job_world import a_job
from testing.clusters.own_nodes import group, groups, member
from testing.processes.command import command
from testing.servers.cluster_objects import Manifest
from testing.servers.provider_process import lost
from testing.soak.settled import assert_day_is_settled
from testing.soak.world import SPARES, World

Event = tuple[float, Callable[[World], None]]
_DAY_SECONDS: Final = 86_400
_GANG_MEMBERS: Final = 4
_WHALE: Final = "whale"
"""A gang that fits nowhere: no pod of it may ever get a node."""


def play_day(world: World, seconds: float) -> None:
    """A day that takes so long, or longer where events take longer to have their effect."""
    began = time.monotonic()
    for hour, act in DAY:
        due = began + hour / 24 * seconds
        time.sleep(max(0.0, due - time.monotonic()))
        world.hour = hour
        act(world)


def _midnight(world: World) -> None:
    """The model is a day older: one that is the same but for its day takes its place."""
    model = model_of(Registry(str(world.models)).load(), datetime.now(UTC))
    older = replace(model, first_day=datetime.now(UTC).date() - timedelta(days=1))
    version = Registry(str(world.models)).publish(artefact_of(older, datetime.now(UTC)))
    world.awaits(lambda: _versions(world) == dict.fromkeys(world.ours, version), lambda: (version, _versions(world)))
    for manifest in world.writer.list_all("jobs"):
        world.writer.delete(manifest)
    owned = ("app-",)
    rest = [one for one in world.pods() if not one["metadata"]["name"].startswith(owned)]
    world.writer.delete_many(rest)
    with groups(world.plane) as those:
        those.delete_all()


def _train(world: World) -> None:
    aged = world.reports("forecast_model_age_seconds")
    world.train()
    newest = Registry(str(world.models)).latest()
    world.awaits(lambda: _versions(world) == dict.fromkeys(world.ours, newest), lambda: (newest, _versions(world)))
    for name, age in world.reports("forecast_model_age_seconds").items():
        # A day younger, but for the time that the training took.
        assert age < aged[name] - _DAY_SECONDS / 2, f"{name}: {age:.0f} s old after training, {aged[name]:.0f} s before"


def _release(world: World) -> None:
    world.deployments.release(_some_services(world))


def _gangs_and_cards(world: World) -> None:
    with groups(world.plane) as those:
        for name in ("gang-a", "gang-b"):
            those.create(group(name, members=_GANG_MEMBERS))
            world.writer.create_many(member(name, i) for i in range(_GANG_MEMBERS))
        those.create(group(_WHALE, members=40))
        world.writer.create_many(member(_WHALE, i, cpu="8") for i in range(40))
    world.writer.create_many(
        [*(gpu_pod(f"gpu-whole-{i}", gpus=1 + i % 2) for i in range(3)), *(_part(i) for i in range(5))]
    )


def _part(number: int) -> Manifest:
    return gpu_pod(f"gpu-part-{number}", milli=(250, 500, 400)[number % 3])


def _scale_up(world: World) -> None:
    world.grown = _some_services(world)
    world.deployments.scale(world.grown, 3)


def _scale_down(world: World) -> None:
    world.deployments.scale(world.grown, -3)


def _nodes_fail(world: World) -> None:
    """Their kubelets die; the node lifecycle controller taints them, pod GC takes their pods, and they are deleted."""
    world.spare_kubelets.kill()
    taints = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    for name, manifest in SPARES.items():
        lost(world.writer, name)
        world.writer.patch(manifest, {"spec": {"taints": taints}})
    time.sleep(1.0)
    world.writer.delete_many(one for one in world.pods() if one["spec"].get("nodeName") in SPARES)
    world.writer.delete_many(SPARES.values())
    # What was decided before anybody heard of it, bound since.
    time.sleep(1.0)
    world.writer.delete_many(one for one in world.pods() if one["spec"].get("nodeName") in SPARES)


def _nodes_return(world: World) -> None:
    world.writer.delete_many(one for one in world.pods() if one["spec"].get("nodeName") in SPARES)
    world.writer.create_many(SPARES.values())
    world.spare_kubelets.start()


def _outage(world: World) -> None:
    world.prometheus.stop()
    world.awaits(lambda: world.all_report("forecast_degradation_level", 1), lambda: _levels(world))


def _outage_ends(world: World) -> None:
    world.prometheus.start()
    world.awaits(lambda: world.all_report("forecast_degradation_level", 0), lambda: _levels(world))


def _corrupt_model(world: World) -> None:
    """Damaged elsewhere and moved into place at once: they look every second."""
    good = _versions(world)
    aside = world.directory / "aside"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(world.models, aside)
    bad = Registry(str(aside)).publish(
        artefact_of(model_of(Registry(str(world.models)).load(), datetime.now(UTC)), datetime.now(UTC))
    )
    array = aside / bad / "usage_dated.npy"
    content = bytearray(array.read_bytes())
    content[-100] ^= 1
    array.write_bytes(content)
    shutil.copytree(aside / bad, world.models / bad)
    os.replace(shutil.copy(aside / "latest.json", world.models / "latest.new"), world.models / "latest.json")
    world.awaits(lambda: world.all_report("forecast_model_refused", 1), lambda: world.reports("forecast_model_refused"))
    assert _versions(world) == good
    rolled_back = command("models", "rollback", "--models", world.models)
    assert rolled_back.returncode == 0, rolled_back.stderr
    shutil.rmtree(world.models / bad, ignore_errors=True)
    world.awaits(lambda: world.all_report("forecast_model_refused", 0), lambda: world.reports("forecast_model_refused"))
    assert _versions(world) == good


def _storm(world: World) -> None:
    """Jobs, one of which may wait and has a deadline; the API server restarts while they come."""
    day = world.day
    jobs = [a_job(f"storm-{day}-{i}", parallelism=10, completions=20, run_seconds=1) for i in range(3)]
    says = {"deadline": "90s", "expected-run": "1s"}
    patient = a_job(f"patient-{day}", parallelism=3, completions=3, run_seconds=1, annotations=says)
    world.writer.create_many([*jobs, patient])
    world.deployments.release(_some_services(world))
    time.sleep(1.0)
    world.plane.api_server.stop()
    world.plane.api_server.start()


def _kill_the_leader(world: World) -> None:
    """In a burst; the other one goes on, and it comes back as a follower."""
    if world.day > 0:
        return
    replicas = [name for name in world.ours if name.startswith("schedule-")]
    world.awaits(lambda: len(_leading(world)) == 1, lambda: _leading(world))
    (leader,) = _leading(world)
    with _burst(world):
        world.ours[leader].kill()
        others = [name for name in replicas if name != leader]
        world.awaits(lambda: world.ours[others[0]].metric("forecast_leader") == 1, lambda: others)
        world.restarted(leader)


@contextmanager
def _burst(world: World) -> Iterator[None]:
    """Pods of our own loops are under way."""
    ours = [name for name, one in world.deployments.services.items() if one.scheduler_name != "default-scheduler"]
    world.deployments.release(ours)
    time.sleep(0.3)
    yield


def _settle(world: World) -> None:
    assert_day_is_settled(world, never=_WHALE, gangs=("gang-a", "gang-b"), n_members=_GANG_MEMBERS)


def _some_services(world: World) -> list[str]:
    """Every third one, another third at every call."""
    names = sorted(world.deployments.services)
    first = int(world.rng.integers(3))
    return names[first::3]


def _versions(world: World) -> dict[str, str | None]:
    found = {}
    for name in world.ours:
        line = [one for one in world.metrics(name).splitlines() if one.startswith("forecast_model_info{")]
        found[name] = line[0].partition('version="')[2].partition('"')[0] if line else None
    return found


def _levels(world: World) -> object:
    return world.reports("forecast_degradation_level"), world.ours["scorer"].get("/v1/status")["reasons"]


def _leading(world: World) -> list[str]:
    return [name for name, one in world.ours.items() if "schedule" in name and one.metric("forecast_leader") == 1]


DAY: Final[tuple[Event, ...]] = (
    (0, _midnight),
    (2, _train),
    (4, _release),
    (6, _scale_up),
    (8, _nodes_fail),
    (10, _nodes_return),
    (12, _gangs_and_cards),
    (13, _outage),
    (14, _outage_ends),
    (16, _corrupt_model),
    (18, _storm),
    (21, _kill_the_leader),
    (22, _scale_down),
    (23, _settle),
)
