"""Runs for tests, with what a test is about said and the rest filled in."""

from __future__ import annotations

from dataclasses import replace

from extender.job.objects.job_runs import JobRun, Outcome
from forecast.service_key import ServiceKey

__all__ = ["REPORT", "run"]

REPORT = ServiceKey("shop", "CronJob", "report")


def run(uid: str = "u", *, seconds: float = 100.0, service: ServiceKey = REPORT) -> JobRun:
    """A Job of one pod that has completed."""
    done = JobRun(service.namespace, f"{service.name}-{uid}", uid, service, started=1000.0, finished=1000.0 + seconds)
    return replace(done, outcome=Outcome.COMPLETE, succeeded=1)
