"""Jobs with slack wait for their planned start, in the queue itself, and no longer than they may."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from forecast.composition import node_load
from forecast.history import Placements
from forecast.resources import CPU
from placement.cluster_events import ClusterEvent, EventKind
from profiles.job.job_settings import ValleyOptions
from profiles.job.valley.forecast_error import ClusterErrors, is_real
from profiles.job.valley.planning_loop import Planner
from tests.profiles.job.valley.waiting_pods import EVENING, Waiting, job_pod, run_seconds
from tests.scorer.live_cluster import at, model
from tests.scorer.scorer_at import LiveScorer, tables


def test_a_job_with_slack_is_held_until_the_valley_and_then_let_go() -> None:
    waiting = Waiting(19.0)
    job = job_pod(created=at(19), latest_start="12h")
    waiting.put(job)
    assert waiting.popped() == []
    waiting.planner.keep_up()
    (planned,) = waiting.planner.planned()
    assert planned.start > at(22)
    assert "cluster" in planned.why and "may start until" in planned.why
    (shown,) = waiting.queue.waiting()
    assert (shown.rejected_by, shown.message) == (frozenset({"Valley"}), planned.why)
    waiting.later(planned.start - at(19) - 10)
    assert waiting.popped() == []
    waiting.later(20)
    assert waiting.popped() == ["job"]


def test_without_a_model_nobody_is_held() -> None:
    waiting = Waiting(without_model=True)
    waiting.put(job_pod(created=at(19), latest_start="12h"))
    waiting.planner.plan()
    assert waiting.popped() == ["job"]
    waiting.put(job_pod("next", created=at(19), latest_start="12h"))
    assert waiting.popped() == ["next"]


def test_what_was_let_go_is_not_held_again_when_its_binding_fails() -> None:
    waiting = Waiting(19.0)
    job = job_pod(created=at(19), latest_start="12h")
    waiting.put(job)
    waiting.planner.plan()
    (planned,) = waiting.planner.planned()
    waiting.later(planned.start - at(19) + 1)
    popped = waiting.queue.pop(most=1, wait_seconds=0.0)
    assert popped is not None
    with waiting.live.scorer.tables.changing() as cluster:
        cluster.assume(job, "node-1", waiting.live.clock.now + 1e6)
    waiting.planner.plan()  # which forgets what has a node
    assert (waiting.planner.planned(), waiting.gate.held()) == ((), {})
    with waiting.live.scorer.tables.changing() as cluster:
        cluster.forget_all([job.uid])
    with waiting.live.scorer.tables.reading():
        waiting.queue.failed(popped.pods)
        waiting.queue.happened(ClusterEvent(EventKind.TIMEOUT))
        assert waiting.gate.pre_enqueue(job).is_success
    waiting.planner.plan()
    waiting.later(2)
    assert waiting.popped() == ["job"]


def test_pods_that_do_not_wait_any_more_are_forgotten() -> None:
    waiting = Waiting(19.0)
    jobs = [job_pod(f"job-{n}", created=at(19), latest_start="12h") for n in range(4)]
    waiting.put(*jobs)
    waiting.planner.plan()
    assert len(waiting.planner.planned()) == 4
    waiting.live.delete(jobs[0])
    waiting.live.put(replace(jobs[1], node="node-1"))
    waiting.planner.plan()
    assert {one.pod.uid for one in waiting.planner.planned()} == set(waiting.gate.held()) == {"uid-job-2", "uid-job-3"}


def test_jobs_to_come_keep_others_out_of_their_minute() -> None:
    waiting = Waiting(19.0)
    waiting.put(job_pod(created=at(19), latest_start="12h"))
    waiting.planner.plan()
    (alone,) = waiting.planner.planned()

    def storm(moments):  # type: ignore[no-untyped-def]
        more = 0.0 * moments[None, :].repeat(5, axis=0)
        more[CPU, abs(moments - alone.start) < 1800] = 150.0
        return more

    beside = Planner(
        waiting.live.scorer.tables,
        waiting.queue,
        waiting.gate,
        run_seconds,
        ValleyOptions(),
        further=storm,
        clock=waiting.live.clock,
    )
    beside.plan()
    (moved,) = beside.planned()
    assert moved.start != alone.start


def test_a_job_is_planned_with_what_it_requests() -> None:
    full = [job_pod(f"full-{n}", f"node-{n}", cpu=26.0, run="20h") for n in range(4)]
    waiting = Waiting(19.0)
    cluster = waiting.live.scorer.tables._cluster
    cluster.run_of = lambda pod, service: 3600.0 * 4 if pod.name.startswith("full") else None
    for pod in full:
        waiting.live.put(replace(pod, started=waiting.live.clock.now))
    waiting.put(job_pod(created=at(19), cpu=20.0, latest_start="12h"))
    waiting.planner.plan()
    (planned,) = waiting.planner.planned()
    assert planned.start >= at(23)
    assert "there is no room for its requests now" in planned.why


def test_it_is_the_spread_of_one_node_with_all_pods() -> None:
    live = LiveScorer(19.0, pods=EVENING)
    predicted = tables(live)
    found = ClusterErrors(live.scorer.tables.reading, is_real).of(predicted, live.clock.now)
    assert found is not None
    pods: Counter[int] = Counter()
    for row in range(4):
        pods.update({number: round(n) for number, n in predicted.load.pods_on(row).items()})
    numbers = sorted(pods)
    keys, replicas = [predicted.keys[n] for n in numbers], np.array([predicted.replicas_used(n) for n in numbers])
    own, shared = predicted.profiles.std_of(keys, replicas, predicted.horizon.today)
    usage = predicted.profiles.mean_of(keys, replicas, predicted.horizon.days[:1])
    service = np.repeat(np.arange(len(numbers)), [pods[n] for n in numbers])
    there = Placements(
        np.arange(len(service)), service, np.zeros_like(service), np.zeros_like(service), np.full_like(service, 48)
    )
    nothing, capacity = np.zeros((1, 48)), np.full(5, 160.0)
    common = float(model().cluster_std[CPU])
    load = node_load(there, usage[:, CPU], own[:, CPU] ** 2, shared[:, CPU] ** 2, nothing, nothing, common)
    share = np.zeros((5, 48))
    share[CPU] = load.mean[0] / 160.0
    np.testing.assert_allclose(found.of_share(share, capacity, np.arange(48))[CPU] * 160.0, load.std[0], rtol=1e-4)
    assert 0.005 < (load.std[0] / load.mean[0]).mean() < 0.5
