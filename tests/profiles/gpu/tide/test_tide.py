"""The controller over a live cluster: what it decides, writes and tells, and what becomes of it when it is stopped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.client.api_answer import ApiAnswer
from kube.objects.objects import PodInfo
from placement.pod_groups.group_of_pod import GROUP_LABEL
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import PodGroupInfo
from profiles.gpu.tide.tide_annotation import MOVES
from profiles.gpu.tide.training_annotations import TIDE
from tests.profiles.gpu.tide.tide_api import FakeApi, no_answer, workload
from tests.profiles.gpu.tide.tide_world import World, gpu_node, inference, moment, trainer

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


def _dies() -> ApiAnswer:
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

    def before(method: str, path: str) -> ApiAnswer | None:
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
    api.before = lambda method, path: ApiAnswer(403, text="403 forbidden")
    world.tide.step()
    assert not api.written and "grant" in world.tide.report.failures["lab/StatefulSet/train"]
    assert world.metrics.unread._value.get() > 0


# Moves that fail


def no_right_to_scale(method: str, path: str) -> ApiAnswer | None:
    return ApiAnswer(403, text="403 forbidden") if method == "PATCH" and path.endswith("/scale") else None


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
