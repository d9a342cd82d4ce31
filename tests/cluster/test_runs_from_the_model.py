"""A scorer knows run lengths from the model, from what it sees, and from pods and Jobs; a restart loses none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats
from cluster.scale_out import expected_scale_out
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from scorer.options import ScorerOptions
from tests.scorer.live_cluster import at, loaded, pod_of
from tests.scorer.nightly_jobs import JOB_LEVEL, NIGHTLY, RUN_SECONDS, job_of_night, job_pod, nightly_model
from tests.scorer.scorer_at import LiveScorer, tables

HALF = ["node-0", "node-1"]


def scorer(
    hour: float,
    pods: Sequence[PodInfo] = (),
    *,
    day: int = 0,
    jobs: Sequence[JobInfo] = (),
    options: ScorerOptions | None = None,
) -> LiveScorer:
    """A process that starts now: it reads Jobs and pods, then the model."""
    tested = LiveScorer(hour + 24 * day, without_model=True, options=options)
    tested.scorer.tables.replace(Kind.JOBS, list(jobs))
    tested.scorer.tables.replace(Kind.PODS, list(pods))
    tested.scorer.tables.install(loaded(nightly_model()))
    tested.scorer.tables.tick()
    return tested


def night_on(nodes: Sequence[str] = HALF, each: int = 4, *, day: int = 0) -> list[PodInfo]:
    return [job_pod(f"{name}-{i}", name, day=day) for name in nodes for i in range(each)]


def ahead(tested: LiveScorer) -> Floats:
    """Cores predicted from now on: (n_nodes, n_slots)."""
    load = tables(tested).load
    curves = load.share_between(CPU, 0, tables(tested).horizon.n_slots, np.arange(4))
    return np.asarray(curves[:, tables(tested).horizon.slot :] * 40.0, dtype=np.float64)


def test_a_new_process_predicts_from_the_model_what_one_predicts_that_saw_the_nights_before() -> None:
    old = scorer(1.0, day=0)
    for day in range(3):
        old.at(2.01, day)
        old.scorer.tables.put(Kind.JOBS, job_of_night(day))
        for pod in night_on(day=day):
            old.put(pod)
        if day < 2:
            old.at(5.0, day)
            for pod in night_on(day=day):
                old.put(job_pod(pod.name.partition("-")[2].partition("-")[2], pod.node, day=day, ended=at(5, day)))
                old.delete(pod)
    old.at(4.0, 2)
    new = scorer(4.0, night_on(day=2), day=2, jobs=[job_of_night(2)])
    np.testing.assert_allclose(ahead(new), ahead(old), rtol=0.01, atol=1e-3)
    assert (ahead(new)[:2, :2] > 4 * JOB_LEVEL * 0.99).all()


def test_runs_are_corrected_by_the_model_and_refined_by_what_is_seen() -> None:
    tested = scorer(2.1, night_on())
    assert [tested.scorer.tables._cluster.runs[pod.uid].end for pod in night_on()] == [at(2) + RUN_SECONDS] * 8
    assert tested.scorer.self_check().sound
    tested = scorer(3.0)
    runs = tested.scorer.tables._cluster.expected_runs
    assert runs.of_service(NIGHTLY).seconds == RUN_SECONDS
    for number in range(40):
        tested.put(job_pod(f"short-{number}", "node-0", ended=at(2) + RUN_SECONDS / 2))
    seconds = runs.of_service(NIGHTLY).seconds
    assert RUN_SECONDS / 2 < seconds < 0.6 * RUN_SECONDS
    tested.scorer.tables.install(loaded(nightly_model(), "again"))
    assert runs.of_service(NIGHTLY).seconds == seconds


def test_a_job_that_is_stopped_earlier_ends_its_pods_whenever_that_becomes_known() -> None:
    stopped = job_of_night(deadline=5400)
    early, late = scorer(2.2, night_on(), jobs=[stopped]), scorer(2.2, night_on(), jobs=[job_of_night()])
    assert {run.end for run in late.scorer.tables._cluster.runs.values()} == {at(2) + RUN_SECONDS}
    late.scorer.tables.put(Kind.JOBS, stopped)
    for tested in (early, late):
        assert {run.end for run in tested.scorer.tables._cluster.runs.values()} == {at(3.5)}
        assert tested.scorer.self_check().sound
    np.testing.assert_allclose(ahead(early), ahead(late), atol=1e-3)


@pytest.mark.parametrize("hour", [5.2, 23.99])
def test_a_pod_that_outlives_its_run_counts_on_through_midnight_and_a_new_model(hour: float) -> None:
    tested = scorer(4.0, night_on(each=1))
    tested.at(hour)
    assert (ahead(tested)[:2, 0] > 0.99 * JOB_LEVEL).all()
    tested.scorer.tables.install(loaded(nightly_model(), "next"))
    assert (ahead(tested)[:2, 0] > 0.99 * JOB_LEVEL).all()
    tested.at(0.3, 1)
    assert (ahead(tested)[:2, 0] > 0.99 * JOB_LEVEL).all()
    assert (ahead(tested)[:2, 1] < ahead(tested)[:2, 0] - 0.9 * JOB_LEVEL).all()


def test_pods_of_jobs_end_by_their_scheduler_and_take_no_room_of_services() -> None:
    workflow = replace(pod_of(None, "step", "node-0", started=at(4.0)), scheduler_name="batch")
    for schedulers, ends in ((("job-scheduler",), False), (("batch",), True)):
        tested = scorer(4.1, [workflow], options=ScorerOptions(job_schedulers=schedulers, default_run=1200.0))
        assert [run.end - run.start for run in tested.scorer.tables._cluster.runs.values()] == [1200.0] * ends
    known = nightly_model()
    autoscaled = known.autoscaled.copy()
    autoscaled[known.services.index(NIGHTLY)] = 1.0
    tested = scorer(2.1, night_on(each=1))
    tested.scorer.tables.install(loaded(replace(known, autoscaled=autoscaled), "autoscaled"))
    with tested.scorer.tables.reading() as cluster:
        assert cluster.predicted is not None and cluster.predicted.profiles.autoscaled(NIGHTLY)
        assert expected_scale_out(cluster) is None
