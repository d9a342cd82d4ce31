"""The plan of a running scheduler, asked over HTTP."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import msgspec

from extender.job.service.bodies import JobPlanBody
from extender.remote_service import RemoteAddress, RemoteService, ServiceUnavailable
from forecast.errors import InputError

__all__ = ["asked_plan"]

_PLAN = msgspec.json.Decoder(JobPlanBody)


def asked_plan(remote: RemoteAddress, *, hours: float, namespace: str | None, limit: int) -> dict[str, Any]:
    """As /v1/jobs/plan answers. Raises InputError, also where nobody answers: it is for the user to name another."""
    query: dict[str, str] = {"hours": f"{hours:g}", "limit": str(limit)}
    if namespace is not None:
        query["namespace"] = namespace
    with closing(RemoteService(remote, "scheduler")) as service:
        try:
            answer = service.request("GET", f"/v1/jobs/plan?{urlencode(query)}")
            plan = _PLAN.decode(answer)
        except ServiceUnavailable as error:
            raise InputError(
                f"{error}; name a running `forecast-scheduler schedule --profile job` with --server URL"
            ) from error
        except msgspec.DecodeError as error:
            raise InputError(
                f"{remote.url} does not answer with a plan ({error}): name a scheduler of this version"
            ) from error
    found: dict[str, Any] = msgspec.to_builtins(plan)
    return found
