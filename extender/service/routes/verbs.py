"""What kube-scheduler calls: its extender protocol v1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fastapi import APIRouter, Request
from msgspec import Raw
from starlette.responses import Response

from extender.extender_api import Filtered
from extender.protocol import replies
from extender.protocol.requests import (
    MalformedRequest,
    Unusable,
    decode_asked,
    decode_binding,
    decode_preemption,
    read_pod,
)
from extender.service.extender_openapi import body, verb_answer
from extender.service.extender_state import ExtenderService, error_response, json_bytes, service_of
from extender.service.workers import AnswerDeadline, Late
from kube.binding.binding_steps import BindingFailed, BindingRequest
from kube.objects.objects import PodInfo
from scorer.service.requests import json_body
from serving.body_budget import LARGE_BODY
from serving.json_answers import Refusal
from serving.threads import in_thread

router = APIRouter(tags=["kube-scheduler"])

T = TypeVar("T")

_BINDING_IS_OFF = (
    "binding by this extender is off: remove bindVerb from its entry in the KubeSchedulerConfiguration, or start the "
    "extender with binding switched on"
)


@router.post("/filter", responses=verb_answer("ExtenderFilterResult"), openapi_extra=body("ExtenderArgs"))
async def filter_nodes(request: Request) -> Response:
    """Which of the nodes pass our filters; the others come with the reason and whether eviction could help.

    Nodes that we do not know pass. With `nodeCacheCapable: true` names are exchanged; whole nodes are understood, too.
    """
    service = service_of(request)
    content = await json_body(request)
    deadline = AnswerDeadline(service.options.deadline)
    try:
        asked = await _decoded(service, "filter", decode_asked, content)
    except Unusable as error:
        return _refused_filter(str(error))

    passed: list[tuple[PodInfo, Sequence[str]]] = []

    def work() -> bytes:
        pod = _pod(service, asked.pod, deadline)
        with service.metrics.stage("filter"):
            filtered = service.extender.filter(pod, asked.nodes)
        passed.append((pod, filtered.nodes))
        with service.metrics.stage("encode"):
            return replies.filter_reply(asked, filtered)

    def after() -> None:
        for pod, nodes in passed:
            with service.metrics.stage("prepare"):
                service.extender.prepare(pod, nodes)

    def neutral() -> bytes:
        return replies.filter_reply(asked, Filtered(asked.nodes))

    return await service.answer("filter", deadline, work, neutral, _refused_filter, after=after)


@router.post("/prioritize", responses=verb_answer("HostPriorityList"), openapi_extra=body("ExtenderArgs"))
async def prioritize(request: Request) -> Response:
    """Points by node, positive for better ones, negative for worse. Nodes that are missing have 0, which is neutral."""
    service = service_of(request)
    content = await json_body(request)
    deadline = AnswerDeadline(service.options.deadline)
    try:
        asked = await _decoded(service, "prioritize", decode_asked, content)
    except Unusable as error:
        return _refused(str(error))

    def work() -> bytes:
        pod = _pod(service, asked.pod, deadline)
        with service.metrics.stage("prioritize"):
            points = service.extender.prioritize(pod, asked.nodes, due=deadline.due)
        with service.metrics.stage("encode"):
            return replies.points_reply(points)

    after = service.extender.settle
    return await service.answer("prioritize", deadline, work, lambda: replies.NO_POINTS, _refused, after=after)


@router.post(
    "/preempt", responses=verb_answer("ExtenderPreemptionResult"), openapi_extra=body("ExtenderPreemptionArgs")
)
async def preempt(request: Request) -> Response:
    """The nodes among those with victims where our filters would let the pod in once the victims are gone."""
    service = service_of(request)
    content = await json_body(request)
    deadline = AnswerDeadline(service.options.deadline)
    try:
        asked = await _decoded(service, "preempt", decode_preemption, content)
    except Unusable as error:
        return _refused(str(error))

    def work() -> bytes:
        pod = _pod(service, asked.pod, deadline)
        with service.metrics.stage("preempt"):
            victims = service.extender.preempt(pod, asked.victims)
        with service.metrics.stage("encode"):
            return replies.victims_reply(victims)

    return await service.answer("preempt", deadline, work, lambda: replies.victims_reply(asked.victims), _refused)


@router.post("/bind", responses=verb_answer("ExtenderBindingResult"), openapi_extra=body("ExtenderBindingArgs"))
async def bind(request: Request) -> Response:
    """Bind a pod to a node, where that is switched on. An empty Error: the pod is bound to that node."""
    service = service_of(request)
    content = await json_body(request)
    try:
        error = await _bind(service, await _decoded(service, "bind", decode_binding, content))
    except Unusable as unusable:
        error = str(unusable)
    return json_bytes(replies.binding_reply(error))


async def _bind(service: ExtenderService, binding: BindingRequest) -> str:
    """Why the pod is not known to be bound; '' = it is."""
    binder, metrics = service.binder, service.metrics
    if binder is None:
        metrics.count("bind", "refused")
        return _BINDING_IS_OFF

    def work() -> None:
        with metrics.stage("bind"):
            binder.bind(binding)

    try:
        await service.binders.run(work, AnswerDeadline(service.options.bind_timeout))
    except BindingFailed as error:
        metrics.count("bind", "failed")
        return str(error)
    except Late:
        # If it is bound after all, kube-scheduler learns it from its watch, and a second binding is refused.
        metrics.count("bind", "late")
        return f"the API server did not confirm the binding within {service.options.bind_timeout:g} s"
    except Exception as error:
        metrics.count("bind", "failed")
        service.say_failure("bind", error)
        return "an error inside the extender: its log says more; please report it"
    metrics.count("bind", "answered")
    return ""


def _pod(service: ExtenderService, pod: Raw, deadline: AnswerDeadline) -> PodInfo:
    """The pod, from whose policy the deadline is known. Raises Unusable."""
    read = read_pod(pod)
    seconds = service.extender.deadline_seconds(read)
    if seconds is not None:
        deadline.move(seconds)
    return read


async def _decoded(service: ExtenderService, verb: str, decode: Callable[[bytes], T], content: bytes) -> T:
    """Raises Refusal for what is malformed, Unusable."""
    try:
        with service.metrics.stage("decode"):
            # Names cost little each, and pods stay raw here: bytes alone say how long it takes.
            return decode(content) if len(content) <= LARGE_BODY else await in_thread(lambda: decode(content))
    except MalformedRequest as error:
        service.metrics.count(verb, "malformed")
        raise Refusal(400, str(error)) from error
    except Unusable:
        service.metrics.count(verb, "refused")
        raise


def _refused_filter(message: str) -> Response:
    return json_bytes(replies.filter_error(message))


def _refused(message: str) -> Response:
    """The reply has no place for an error: any other status than 200 is one, and kube-scheduler goes on without us."""
    return error_response(400, message)
