"""Which pods wait, and for what."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from scheduler.queue.queued_pods import SHOWN
from scheduler.scheduling_answers import queue_answer
from scheduler.service.state_routes import TheSchedulingService
from scorer.service.scorer_openapi import answer
from serving.json_answers import json_response

router = APIRouter(prefix="/v1", tags=["scheduling"])

MOST_PODS = 1000

if TYPE_CHECKING:
    QueuePart = StrEnum
else:
    QueuePart = StrEnum("QueuePart", [(part.name, part.value) for part in SHOWN])

Part = Annotated[QueuePart | None, Query(description="Only this part of the queue.")]
Namespace = Annotated[str | None, Query(description="Only pods of this namespace.")]
Limit = Annotated[int, Query(ge=1, le=MOST_PODS, description="Most pods in the answer.")]


@router.get("/queue", responses=answer("Queue", 422))
async def queue(
    service: TheSchedulingService, part: Part = None, namespace: Namespace = None, limit: Limit = 100
) -> Response:
    """Pods that wait, with what rejected them and why: by priority, then those that wait longest."""

    def look() -> Response:
        pods = (
            pod
            for pod in service.scheduling.waiting()
            if part in (None, pod.part) and namespace in (None, pod.namespace)
        )
        scheduling = service.scheduling
        return json_response(queue_answer(pods, scheduling.state().pending, scheduling.queues(), limit))

    return await service.in_thread(look)
