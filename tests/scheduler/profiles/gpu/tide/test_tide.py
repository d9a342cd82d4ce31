"""The controller over a live cluster: what it decides, writes and tells, and what becomes of it when it is stopped."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from forecast_scheduler.reports.tide_tables import tide_lines, tide_report_tables
from kube.client.api_answer import Answer
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.filters.filter import rejected
from placement.plugins import CountsRoom, EnqueueExtensions, Hint
from placement.pod_groups.labels import GROUP_LABEL
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import PodGroupInfo
from placement.what_if import WithoutPods
from scheduler.profiles.gpu.tide.metrics import TideMetrics
from scheduler.profiles.gpu.tide.report import NO_REPORT, TideReport
from scheduler.profiles.gpu.tide.service.bodies import TIDE_BODIES
from scheduler.profiles.gpu.tide.service.routes import tide_router
from scheduler.profiles.gpu.tide.tide_annotation import MOVES
from scheduler.profiles.gpu.tide.training_annotations import TIDE
from scorer.service.app import assembled
from scorer.service.metrics import ServiceMetrics
from scorer.service.openapi import describe
from scorer.service.options import ServiceOptions
from scorer.service.state import Service
from testing.app_client import AppClient
from tests.scheduler.profiles.gpu.tide.tide_world import (
    FakeApi,
    World,
    demand,
    gpu_node,
    inference,
    moment,
    no_answer,
    trainer,
    workload,
)
from tests.scorer.service.fake_scorer import FakeScorer

ELASTIC = {"min-replicas": "1", "max-replicas": "8"}
SERVING = [inference(n, "node-0") for n in range(4)]


def stateful(replicas: int, **rest: Any) -> dict[str, Any]:
    return workload("StatefulSet", "train", replicas, annotations=ELASTIC, **rest)


def trainers(n: int, **rest: Any) -> list[Any]:
    return [trainer(k, "node-0" if k < 2 else "node-1", **rest) for k in range(n)]


def test_training_fills_what_inference_leaves_and_is_gone_in_time() -> None:
    """16 GPUs: 4 for inference until 18:00, 10 until 23:00; a replica of training has 2 and drains in ten minutes."""
    api = FakeApi(stateful(2))
    world = World(api, 12.0, pods=[*SERVING, *trainers(2)])
    world.tide.step()
    assert api.spec("train")["replicas"] == 6
    (told,) = world.told
    assert told[:2] == ("lab/StatefulSet/train", "TideGrow")
    assert told[2].startswith("grows from 2 to 6 replicas (8 GPUs): inference is predicted to leave 12 GPUs")
    world.put(*trainers(6))
    # A half hour counts as its neighbours: what rises at 18:00 is expected at 17:30.
    world.at(17.3)
    world.tide.step()
    assert api.spec("train")["replicas"] == 6
    world.at(17.34)
    world.tide.step()
    assert api.spec("train")["replicas"] == 3
    note = world.told[-1][2]
    assert "by 17:30 inference is predicted to need 10 GPUs of 16, ns-000/Deployment/service-00000 6.0 more" in note
    assert "draining takes 10 min" in note
    world.delete(*trainers(6)[3:])
    world.at(20.0)
    world.tide.step()
    assert api.spec("train")["replicas"] == 3
    world.at(23.6)
    world.tide.step()
    assert api.spec("train")["replicas"] == 6, "back over night"


def test_killed_between_record_and_scale_the_same_move_is_made_and_counted_once() -> None:
    api = FakeApi(stateful(6))
    api.before = lambda method, path: _dies() if method == "PATCH" and path.endswith("/scale") else None
    world = World(api, 17.4, pods=[*SERVING, *trainers(6)])
    with pytest.raises(_Killed):
        world.tide.step()
    assert api.spec("train")["replicas"] == 6 and MOVES in api.named("train")["metadata"]["annotations"]

    api.before = lambda method, path: None
    again = World(api, 17.41, pods=[*SERVING, *trainers(6)])
    again.tide.step()
    record = json.loads(api.named("train")["metadata"]["annotations"][MOVES])
    assert api.spec("train")["replicas"] == 3 and (record["from"], record["to"], record["moves"]) == (6, 3, 1)


class _Killed(BaseException):
    """As the process is."""


def _dies() -> Answer:
    raise _Killed


def test_a_conflict_is_read_again_and_nobody_is_overwritten() -> None:
    api = FakeApi(stateful(6))
    once = iter([6])

    def touched(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/scale") and (replicas := next(once, None)) is not None:
            api.change("train", replicas=replicas)

    api.before = touched
    world = World(api, 17.4, pods=[*SERVING, *trainers(6)])
    world.tide.step()
    assert api.spec("train")["replicas"] == 3, "somebody touched it, and left the number alone"

    api = FakeApi(stateful(6))

    def scaled(method: str, path: str) -> None:
        if path.endswith("/scale"):
            api.change("train", replicas=5)

    api.before = scaled
    world = World(api, 17.4, pods=[*SERVING, *trainers(6)])
    world.tide.step()
    assert api.spec("train")["replicas"] == 5, "somebody else has scaled it"
    assert world.tide.report.moves[0].outcome.startswith("changed")
    api.before = lambda method, path: None
    world.tide.step()
    assert api.spec("train")["replicas"] == 3


def test_an_answer_that_is_lost_is_looked_up() -> None:
    api = FakeApi(stateful(6))
    lost = iter([True])

    def before(method: str, path: str) -> Answer | None:
        if method == "PATCH" and path.endswith("/scale") and next(lost, False):
            api.change("train", replicas=3)  # it was carried out
            return no_answer()
        return None

    api.before = before
    world = World(api, 17.4, pods=[*SERVING, *trainers(6)])
    world.tide.step()
    assert world.tide.report.moves[0].outcome == "done" and api.spec("train")["replicas"] == 3


def test_a_job_is_scaled_by_its_parallelism_in_one_write() -> None:
    api = FakeApi(workload("Job", "train", 6, annotations=ELASTIC))
    world = World(api, 17.4, pods=[*SERVING, *trainers(6, kind="Job")])
    world.tide.step()
    assert api.spec("train")["parallelism"] == 3
    ((path, patch),) = api.written
    assert path.endswith("/jobs/train") and patch["spec"] == {"parallelism": 3} and MOVES in str(patch)


def test_a_custom_resource_is_found_by_discovery() -> None:
    resources = [{"name": "trainjobs", "kind": "TrainJob"}, {"name": "trainjobs/scale", "kind": "Scale"}]
    api = FakeApi(groups={"ml.example/v1": resources, "other.example/v1": [{"name": "trains", "kind": "Train"}]})
    made = workload("TrainJob", "train", 6, annotations=ELASTIC)
    api.put(made, group_version="ml.example/v1", plural="trainjobs")
    world = World(api, 17.4, pods=[*SERVING, *trainers(6, kind="TrainJob")])
    world.tide.step()
    assert api.spec("train")["replicas"] == 3
    assert [path.rpartition("/")[2] for path, _ in api.written] == ["train", "scale"]


def test_what_cannot_be_scaled_keeps_its_gpus_and_is_told() -> None:
    api = FakeApi(groups={"other.example/v1": [{"name": "trains", "kind": "Train"}]})
    world = World(api, 17.4, pods=[*SERVING, *trainers(6, kind="Train")])
    world.tide.step()
    assert "no kind Train with a scale subresource" in world.tide.report.failures["lab/Train/train"]
    demand = world.tide.report.demand
    assert demand is not None and demand.need[0, 0] >= 16 and not world.tide.report.trainings


def test_pods_of_inference_that_wait_make_training_shrink_at_once() -> None:
    api = FakeApi(stateful(6))
    world = World(api, 12.0, pods=[*SERVING, *trainers(6), inference(4), inference(5)])
    world.tide.step()
    assert api.spec("train")["replicas"] == 5
    assert "at once: pods of ns-000/Deployment/service-00000 wait for 2 GPUs now" in world.told[-1][2]
    assert world.metrics.waiting.labels("A100")._value.get() == 2
    world.later(30)
    world.tide.step()
    assert world.metrics.shortfall.labels("A100")._value.get() == 30
    assert api.spec("train")["replicas"] == 5, "what drains already is not asked for twice"


def test_a_dry_run_and_a_replica_that_does_not_lead_write_nothing() -> None:
    for options in ({"dry_run": True}, {"may_write": lambda: False}):
        api = FakeApi(stateful(2))
        world = World(api, 12.0, pods=[*SERVING, *trainers(2)], **options)
        world.tide.step()
        world.tide.step()
        assert not api.written and world.tide.report.moves[0].move.after == 6
        assert world.tide.report.writes
        assert world.metrics.moves.labels("grow", "dry_run")._value.get() == (1 if "dry_run" in options else 0)


def test_one_that_was_stopped_is_found_without_pods_and_resumes() -> None:
    api = FakeApi(workload("StatefulSet", "whole", 4, gpus=2))
    pods = [trainer(n, "node-1", of="whole") for n in range(4)]
    world = World(api, 17.4, pods=[*SERVING, *pods])
    world.tide.step()
    assert api.spec("whole")["replicas"] == 0 and world.told[-1][1] == "TideTake"
    assert "stops as a whole, from 4 to 0" in world.told[-1][2]

    again = World(api, 20.0, pods=SERVING)
    again.tide.step()
    (seen,) = again.tide.report.trainings
    assert seen.training.taken and seen.training.least == 4 and api.spec("whole")["replicas"] == 0
    again.at(23.6)
    again.tide.step()
    assert api.spec("whole")["replicas"] == 4 and again.told[-1][1] == "TideResume"


def test_who_was_switched_off_by_its_owner_stays_off() -> None:
    api = FakeApi(stateful(0, labels={TIDE: "training"}))
    world = World(api, 12.0, pods=SERVING)
    world.tide.step()
    assert api.spec("train")["replicas"] == 0 and not world.told


def test_the_label_alone_makes_no_training_of_pods_that_do_not_say_so() -> None:
    made = stateful(2, labels={TIDE: "training"})
    made["spec"]["template"]["metadata"]["annotations"] = {}
    api = FakeApi(made)
    world = World(api, 12.0, pods=SERVING)
    world.tide.step()
    assert not api.written and not world.tide.report.trainings


def test_suspended_and_finished_jobs_are_left_alone() -> None:
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    for is_suspended in (True, False):
        made = workload("Job", "train", 2, annotations=ELASTIC, suspend=is_suspended)
        if not is_suspended:
            made["status"] = done
        api = FakeApi(made)
        world = World(api, 12.0, pods=[*SERVING, *trainers(2, kind="Job")])
        world.tide.step()
        assert not api.written and not world.tide.report.trainings


def test_what_cannot_be_read_is_shown_and_not_moved() -> None:
    api = FakeApi(stateful(2))
    world = World(api, 12.0, pods=[*SERVING, *trainers(2)])
    api.before = lambda method, path: Answer(403, text="403 forbidden")
    world.tide.step()
    assert not api.written and "grant" in world.tide.report.failures["lab/StatefulSet/train"]
    assert world.metrics.unread._value.get() > 0


# Moves that fail


def no_right_to_scale(method: str, path: str) -> Answer | None:
    return Answer(403, text="403 forbidden") if method == "PATCH" and path.endswith("/scale") else None


def test_one_that_cannot_be_scaled_is_left_alone_for_longer_and_longer() -> None:
    """A look every 30 s: tried again after 60 s, 120 s, 240 s."""
    api = FakeApi(stateful(6))
    api.before = no_right_to_scale
    world = World(api, 17.4, pods=[*SERVING, *trainers(6)])
    tried = []
    for look in range(16):
        before = len(api.written)
        world.tide.step()
        if len(api.written) > before:
            tried.append(look)
        world.later(30)
    assert tried == [0, 2, 6, 14]
    assert [reason for _, reason, _ in world.told] == ["TideFailed"] * 4
    assert world.tide.report.moves[0].outcome.startswith("it could not be scaled, and is tried again in")
    api.before = lambda method, path: None
    world.later(600)
    world.tide.step()
    assert api.spec("train")["replicas"] == 3


# Pods that wait, and GPUs could not help


@pytest.mark.parametrize(
    "waits",
    [
        inference(9, gpus=7.0, gates=("example.com/quota",)),
        inference(9, gpus=12.0),
        inference(9, gpus=7.0, created=0.0),
    ],
    ids=["gated", "larger than any node", "for too long"],
)
def test_training_does_not_shrink_for_pods_that_gpus_do_not_help(waits: PodInfo) -> None:
    api = FakeApi(stateful(6))
    world = World(api, 12.0, pods=[*SERVING, *trainers(6), waits])
    world.tide.step()
    assert api.spec("train")["replicas"] == 6 and not world.told
    assert world.metrics.waiting.labels("A100")._value.get() == 0


def test_a_pod_is_waited_for_until_trainings_have_drained_and_ten_minutes_more() -> None:
    for age, replicas in ((1190, 5), (1210, 6)):
        api = FakeApi(stateful(6))
        waits = [inference(9, gpus=2.0, created=moment(12.0) - age)]
        World(api, 12.0, pods=[*SERVING, *trainers(6), *waits]).tide.step()
        assert api.spec("train")["replicas"] == replicas


def test_room_is_made_where_there_are_nodes_of_the_pods_size() -> None:
    """The service's other pods have cards of the small nodes."""
    small = gpu_node("node-2", gpus=4, product="T4")
    serving = [inference(n, "node-2") for n in range(2)]
    world = World(FakeApi(), 12.0, pods=[*serving, inference(9, gpus=6.0)], nodes=[gpu_node("node-0"), small])
    world.tide.step()
    demand = world.tide.report.demand
    assert demand is not None and dict(zip(world.table.pools, demand.waiting, strict=True)) == {"A100": 6, "T4": 0}


# Gangs


def gang_of(members: int) -> PodGroupInfo:
    return PodGroupInfo("lab", "gang", "uid-gang", 1, 0.0, minima=Minima(members))


def test_a_gang_is_not_shrunk_below_its_minimum_but_stopped_and_resumed_with_it() -> None:
    """6 GPUs are left to training in the evening, three replicas; the gang needs four."""
    api = FakeApi(stateful(6))
    api.named("train")["spec"]["template"]["metadata"]["labels"][GROUP_LABEL] = "gang"
    pods = trainers(6, labels={GROUP_LABEL: "gang"})
    world = World(api, 17.4, pods=[*SERVING, *pods], groups=[gang_of(4)])
    world.tide.step()
    (seen,) = world.tide.report.trainings
    assert seen.training.least == 4 and "min-replicas is 1, and its PodGroup needs 4" in seen.mistakes
    assert world.told[-1][1] == "TideTake" and api.spec("train")["replicas"] == 0

    again = World(api, 20.0, pods=SERVING, groups=[gang_of(4)])
    again.tide.step()
    assert api.spec("train")["replicas"] == 0, "not three of them, which could not run"
    again.at(23.6)
    again.tide.step()
    assert api.spec("train")["replicas"] >= 4


def test_what_its_gang_needs_is_on_record_while_a_workload_has_no_pods() -> None:
    api = FakeApi(groups={"ml.example/v1": [{"name": "trains", "kind": "Train"}, {"name": "trains/scale"}]})
    api.put(workload("Train", "train", 6, annotations=ELASTIC), group_version="ml.example/v1", plural="trains")
    pods = trainers(6, kind="Train", labels={GROUP_LABEL: "gang"})
    World(api, 17.4, pods=[*SERVING, *pods], groups=[gang_of(4)]).tide.step()
    assert api.spec("train")["replicas"] == 0

    again = World(api, 18.0, pods=SERVING, kinds=("ml.example/v1/trains",))
    again.tide.step()
    (seen,) = again.tide.report.trainings
    assert seen.training.least == 4


# A dry run


REPORTS = [NO_REPORT]


@pytest.fixture(scope="module")
def report() -> TideReport:
    api = FakeApi(workload("StatefulSet", "train", 2, annotations={"min-replicas": "1", "max-replicas": "many"}))
    pods = [*(inference(n, "node-0") for n in range(4)), *(trainer(n, "node-1") for n in range(2))]
    world = World(api, 16.0, pods=pods)
    api.named("train")["metadata"]["annotations"]["forecast-scheduler.io/max-replicas"] = "8"
    world.tide.step()
    return world.tide.report


@pytest.fixture
def client(report: TideReport) -> Iterator[AppClient]:
    scorer, options = FakeScorer(1), ServiceOptions()
    service = Service(scorer, options, ServiceMetrics(scorer, options, ()))

    def document(app: Any, *, with_tokens: bool) -> dict[str, Any]:
        return describe(app, with_tokens=with_tokens, more=TIDE_BODIES)

    REPORTS[:] = [report]
    with AppClient(assembled("test", service, [tide_router(lambda: REPORTS[0])], document)) as client:
        yield client


def test_all_of_it_is_told(client: AppClient) -> None:
    told = client.get("/v1/tide").json()
    (pool,), (training,), (move,) = told["pools"], told["trainings"], told["moves"]
    assert (pool["pool"], pool["capacity_gpus"], pool["inference_gpus"]) == ("A100", 16, 4)
    assert len(pool["ahead"]) == 49 and pool["ahead"][0]["start"] == "2026-05-19T16:00:00Z"
    assert [point["needed_gpus"] for point in pool["ahead"][2:5]] == [4, 10, 10]
    assert training["training"] == "lab/StatefulSet/train" and training["max_replicas"] == 8
    assert (move["kind"], move["before"], move["after"], move["outcome"]) == ("grow", 2, 6, "done")
    assert [(one["kind"], one["after"]) for one in told["ahead"]] == [("shrink", 3), ("grow", 6)]
    assert told["no_forecast_because"] is None and told["writes_nothing_because"] is None


def test_tables_of_the_command(client: AppClient) -> None:
    told = client.get("/v1/tide").json()
    console = Console(width=220, file=io.StringIO())
    for table in tide_report_tables(told):
        console.print(table)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "A100: 16 GPUs, now 4 inference, 4 training" in shown and "Moves ahead" in shown
    assert "lab/StatefulSet/train" in shown and "inference is predicted to leave" in shown
    empty = told | {"pools": [], "no_forecast_because": "no model", "unread": {"jobs": "403"}}
    assert list(tide_lines(empty)) == ["no training grows: no model", "no node has GPUs", "jobs: 403"]


DOC = (Path(__file__).parents[5] / "docs" / "use" / "tide.md").read_text()


def test_every_metric_is_in_the_doc() -> None:
    names = set()
    for collector in TideMetrics().collectors:
        for metric in collector.describe() if hasattr(collector, "describe") else collector.collect():
            names.add(metric.name + ("_total" if metric.type == "counter" else ""))
    assert names and {name for name in names if f"`{name}" not in DOC} == set()


NODES = [gpu_node("node-0"), gpu_node("node-1"), gpu_node("node-2", gpus=2, product="T4"), gpu_node("node-3", gpus=0)]


def planned(hour: float, *pods: PodInfo, **rest: object) -> World:
    world = World(FakeApi(), hour, pods=[*SERVING, *pods], nodes=NODES, **rest)  # type: ignore[arg-type]
    world.tide.step()
    return world


def passes(world: World, pod: PodInfo) -> list[str]:
    with world.scorer.tables.reading():
        nodes = ~rejected(world.room.filter(pod, world.view), world.view.n_rows)
        return [world.view.state.names[row] for row in np.flatnonzero(nodes & world.view.state.alive)]


def test_a_training_is_kept_out_of_what_inference_needs_before_it_would_be_drained() -> None:
    """A100: 16 GPUs, inference 4 until the evening and 10 in it; training holds 8."""
    holding = [trainer(n, "node-1", gpus=1.0) for n in range(8)]
    pod = trainer(9, gpus=1.0)
    everywhere = ["node-0", "node-1", "node-2", "node-3"]
    assert passes(planned(12.0, *holding[:6]), pod) == everywhere
    assert passes(planned(17.4, *holding[:5]), pod) == everywhere
    assert passes(planned(17.4, *holding[:6]), pod) == ["node-2", "node-3"]
    patient = trainer(9, gpus=1.0, annotations={"checkpoint-grace": "1m"})
    assert passes(planned(17.4, *holding[:6]), patient) == everywhere


def test_evicting_other_training_helps_and_the_trial_sees_it() -> None:
    holding = [trainer(n, "node-1", gpus=1.0) for n in range(6)]
    world, pod = planned(17.4, *holding), trainer(9, gpus=1.0)
    with world.scorer.tables.reading():
        (rejection,) = world.room.filter(pod, world.view)
        assert rejection.preemptible
        with WithoutPods(world.view) as what_if:
            what_if.take(holding[0].uid)
            assert not world.room.filter(pod, world.view)
        assert world.room.filter(pod, world.view)
    alone, pod = planned(17.4), trainer(9, gpus=8.0)
    with alone.scorer.tables.reading():
        (rejection, *_) = alone.room.filter(pod, alone.view)
        assert not rejection.preemptible, "there is no training to evict"


def test_as_many_at_once_as_the_pool_takes_all_nodes_together() -> None:
    world, pod = planned(17.4), trainer(9, gpus=1.0)
    with world.scorer.tables.reading():
        state = world.view.state
        rows = np.array([state.row_of[name] for name in ("node-0", "node-1")])
        assert world.room.room(pod, world.view, rows).tolist() == [6, 6]
        assert world.room.prefer(pod, 100, world.view, rows).most == 6
        assert world.room.prefer(pod, 3, world.view, rows).most == 3
        elsewhere = np.array([state.row_of["node-3"]])
        assert world.room.room(pod, world.view, elsewhere)[0] > 10**6
        assert world.room.room(inference(9), world.view, rows).min() > 10**6


def test_without_a_forecast_the_last_gpus_are_left_to_inference() -> None:
    holding = [trainer(n, "node-1", gpus=1.0) for n in range(8)]
    late = [inference(n, "node-0") for n in range(4, 7)]
    pod = trainer(9, gpus=1.0)
    assert "node-0" in passes(planned(17.4, *holding, without_model=True), pod)
    world = planned(17.4, *holding, *late, without_model=True)
    assert "node-0" not in passes(world, pod), "one GPU is free, and a tenth of seven is kept"


def test_hints() -> None:
    world = planned(12.0)
    pod = trainer(9)
    left = ClusterEvent(EventKind.POD_LEFT, pod=inference(0))
    assert world.room.hint(pod, left) is Hint.QUEUE
    plain = inference(0, gpus=0.0)
    assert world.room.hint(pod, ClusterEvent(EventKind.POD_LEFT, pod=plain)) is Hint.SKIP
    assert world.room.hint(pod, ClusterEvent(EventKind.NAMESPACE_CHANGED)) is Hint.SKIP
    for protocol in (EnqueueExtensions, CountsRoom):
        assert isinstance(world.room, protocol)


def test_pods_that_wait_are_asked_again_where_there_is_more_room() -> None:
    world = planned(20.0)
    before = len(world.queue.events)
    world.tide.step()
    assert len(world.queue.events) == before
    world.at(23.6)
    world.tide.step()
    assert [event.kind for event in world.queue.events[before:]] == [EventKind.FORECAST_CHANGED]


def test_more_room_in_the_hours_ahead_is_more_room() -> None:
    """For pods that take long to drain; now there is as much as before."""
    room = World(FakeApi()).room
    assert room.use(demand([4, 4, 12, 12])), "the first"
    assert not room.use(demand([4, 4, 12, 12]))
    assert room.use(demand([4, 4, 8, 8]))
    assert not room.use(demand([4, 4, 8, 4])), "beyond what is as tight as before"
    assert not room.use(demand([4, 6, 8, 8]))
    assert not room.use(demand([4, 6, 8, 8], forecast=False))
    assert room.use(demand([4, 6, 8, 8])), "a forecast"


def test_an_old_plan_counts_as_none() -> None:
    """16 GPUs: inference has 4 and is expected to need 10; without a forecast it keeps a tenth more than it has."""
    pod = trainer(9, gpus=1.0)
    eight = planned(20.0, *[trainer(n, "node-1", gpus=1.0) for n in range(8)])
    assert "node-0" not in passes(eight, pod)
    eight.clock.now += 599
    assert "node-0" not in passes(eight, pod)
    eight.clock.now += 2
    assert "node-0" in passes(eight, pod)
    eight.put(*(trainer(n, "node-0", gpus=1.0) for n in range(8, 11)))
    assert "node-0" not in passes(eight, pod)
    with eight.scorer.tables.reading():
        assert {"planned for a while" in one.reason for one in eight.room.filter(pod, eight.view)} == {True}
    before = len(eight.queue.events)
    eight.tide.step()
    assert len(eight.queue.events) == before + 1, "a new plan is asked"

    slow = planned(20.0, *[trainer(n, "node-1", gpus=1.0) for n in range(8)], every=120.0)
    slow.clock.now += 1199
    assert "node-0" not in passes(slow, pod)
