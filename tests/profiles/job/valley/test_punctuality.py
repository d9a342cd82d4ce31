"""Jobs on time and late: each counted once, whatever happens to the pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prometheus_client import Counter

from forecast.service_key import Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo, PodPhase
from profiles.job.due_times import DatedTerms
from profiles.job.job_metrics import ValleyMetrics
from profiles.job.valley.punctuality import DEADLINE_MISSED, LATEST_START_MISSED, Punctuality
from tests.kube.job_table import JobTable
from tests.profiles.job.valley.waiting_pods import job_pod
from tests.scorer.scorer_at import LiveScorer


class Followed:
    def __init__(self) -> None:
        self.live, self.metrics = LiveScorer(without_model=True), ValleyMetrics()
        self.tables = self.live.scorer.tables._cluster
        self.punctuality = self.follow()

    def follow(self) -> Punctuality:
        made = Punctuality(
            self.tables.state,
            self.tables.assumed.__contains__,
            lambda pod: not pod.name.startswith("other"),
            metrics=self.metrics,
            clock=self.live.clock,
        )
        self.live.scorer.tables.attach((), made)
        return made

    def later(self, seconds: float) -> None:
        self.live.later(seconds)
        self.punctuality.check()

    def job(self, name: str = "job", **said: Any) -> PodInfo:
        pod = job_pod(name, created=self.live.clock.now, **said)
        self.live.put(pod)
        return pod

    def bind(self, pod: PodInfo) -> PodInfo:
        bound = replace(pod, node="node-1", phase=PodPhase.RUNNING)
        self.live.put(bound)
        return bound

    def end(self, pod: PodInfo, phase: PodPhase = PodPhase.SUCCEEDED, **more: Any) -> None:
        self.live.put(replace(pod, phase=phase, **more))

    def counts(self) -> tuple[int, int, int, int]:
        """Latest start met, missed; deadline met, missed."""
        metrics = self.metrics
        return (
            value(metrics.latest_start_met),
            value(metrics.latest_start_missed),
            value(metrics.deadline_met),
            value(metrics.deadline_missed),
        )

    def reasons(self) -> list[str]:
        return [miss.reason for miss in self.punctuality.take_misses()]


def value(counter: Counter) -> int:
    (metric,) = counter.collect()
    return int(next(sample.value for sample in metric.samples if sample.name.endswith("_total")))


def test_a_job_on_time() -> None:
    followed = Followed()
    pod = followed.job(latest_start="1h", deadline="3h")
    followed.later(1800)
    bound = followed.bind(pod)
    followed.later(3600)
    followed.end(bound)
    followed.later(86_400)
    assert followed.counts() == (1, 0, 1, 0)
    assert followed.reasons() == []


def test_after_a_restart_what_lies_ahead_is_followed() -> None:
    followed = Followed()
    followed.job("waits", latest_start="1h")
    followed.bind(followed.job("runs", latest_start="1h", deadline="2h"))
    again = Followed()
    for pod in followed.tables.state.pods.values():
        again.live.put(pod)
    again.later(3 * 3600)
    assert again.counts() == (0, 1, 0, 1)


class DatedByJobs(Followed):
    """Durations count from the creation of Jobs, which are heard of when they are."""

    def __init__(self) -> None:
        self.jobs = JobTable()
        super().__init__()
        self.pod = job_pod()

    def follow(self) -> Punctuality:
        dated = DatedTerms(self.jobs)
        made = Punctuality(
            self.tables.state,
            self.tables.assumed.__contains__,
            lambda pod: True,
            terms=dated.of,
            is_settled=dated.is_settled,
            metrics=self.metrics,
            clock=self.live.clock,
        )
        self.live.scorer.tables.attach((), made)
        return made

    def of_job(self, name: str, **said: Any) -> PodInfo:
        pod = replace(job_pod(name, created=self.live.clock.now, **said), owner=Owner("Job", "work"), owner_uid="u")
        self.live.put(pod)
        return pod

    def hears_of(self, created: float) -> None:
        self.jobs.put(JobInfo(self.pod.namespace, "work", "u", ServiceKey("shop", "Job", "work"), created=created))


def test_the_deadline_of_a_pod_that_is_made_anew_is_still_that_of_its_job() -> None:
    followed = DatedByJobs()
    began = followed.live.clock.now
    followed.pod = followed.of_job("first", deadline="2h")
    followed.hears_of(began)
    followed.later(3600)
    followed.live.delete(followed.pod)
    followed.of_job("second", deadline="2h")
    followed.later(3599)
    assert followed.counts() == (0, 0, 0, 0)
    followed.later(2)
    assert followed.counts() == (0, 0, 0, 1)


def test_a_job_that_is_heard_of_after_its_pod_still_dates_it() -> None:
    followed = DatedByJobs()
    began = followed.live.clock.now
    followed.later(3600)
    followed.pod = followed.of_job("late", deadline="2h", latest_start="1h10m")
    followed.later(5)
    followed.hears_of(began)
    followed.later(600)
    assert followed.counts() == (0, 1, 0, 0)
    followed.later(3000)
    assert followed.counts() == (0, 1, 0, 1)
    assert not followed.punctuality._unsettled


def test_what_was_over_when_a_bound_pod_was_first_seen_does_not_count() -> None:
    followed = DatedByJobs()
    began = followed.live.clock.now
    followed.later(7300)
    pod = replace(
        job_pod("bound", "node-1", created=followed.live.clock.now - 10, deadline="2h"), phase=PodPhase.RUNNING
    )
    followed.pod = replace(pod, owner=Owner("Job", "work"), owner_uid="u")
    followed.live.put(followed.pod)
    followed.hears_of(began)
    followed.later(7300)
    assert followed.counts() == (0, 0, 0, 0)


def test_what_was_counted_is_not_counted_again_when_the_pod_changes() -> None:
    followed = Followed()
    pod = followed.job(latest_start="1h", deadline="3h")
    followed.later(3601)
    for change in range(3):
        followed.live.put(replace(pod, nominated_node=f"node-{change}"))
        followed.later(1)
        followed.punctuality.rebuild()
        followed.later(1)
    assert followed.counts() == (0, 1, 0, 0)
    followed.later(3 * 3600)
    for change in range(3):
        followed.live.put(replace(pod, nominated_node=f"node-{change}"))
        followed.later(1)
        followed.punctuality.rebuild()
        followed.later(1)
    assert followed.counts() == (0, 1, 0, 1)
    assert followed.reasons() == [LATEST_START_MISSED, DEADLINE_MISSED]
