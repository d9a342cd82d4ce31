"""Runs for tests, with what a test is about said and the rest filled in."""

from __future__ import annotations

from dataclasses import replace

from cluster.runs.run_times import RunTimes
from forecast.service_key import Owner, ServiceKey
from kube.decoding.jobs import JobInfo, JobOutcome
from tests.kube.api_objects import pod

POD = pod("a", owner=Owner("Job", "report-1"), owner_uid="j", created=10_000.0)
REPORT = ServiceKey("shop", "CronJob", "report")


def run(uid: str = "u", *, seconds: float = 100.0, service: ServiceKey = REPORT) -> JobInfo:
    """A Job of one pod that has completed."""
    done = JobInfo(service.namespace, f"{service.name}-{uid}", uid, service, started=1000.0, finished=1000.0 + seconds)
    return replace(done, outcome=JobOutcome.COMPLETE, succeeded=1)


def times(*seconds: float) -> RunTimes:
    """Run times that pods of REPORT have taught."""
    made = RunTimes()
    for one in seconds:
        made.learn(REPORT, one)
    return made
