"""The plan of a running scheduler, asked over HTTP."""

from __future__ import annotations

from typing import Any

from forecast_scheduler.commands.remote_server import asked_scheduler
from scheduler.profiles.job.jobs_plan_answers import JobPlan
from serving.remote_service import RemoteAddress


def asked_plan(remote: RemoteAddress, *, hours: float, namespace: str | None, limit: int) -> dict[str, Any]:
    """As /v1/jobs/plan answers. Raises InputError."""
    query: dict[str, str] = {"hours": f"{hours:g}", "limit": str(limit)}
    if namespace is not None:
        query["namespace"] = namespace
    return asked_scheduler(remote, "/v1/jobs/plan", query, JobPlan, profile="job")
