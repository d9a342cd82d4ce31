"""Carries resizes out, as one of the hands of the service `autoscale`.

    act      list the pods that ask, decide (resizing.py); record the original requests, then resize
    retreat  resize to the original requests, as far as nodes have room, then remove the record

Records are on the pods, whose users can write them too: one without our proof is reported, and its pod left alone. What
goes wrong with one pod keeps no other from its turn.

Each write is safe to end at: a record without a resize is used by the next step or removed by a retreat, and a resize
without an end is a request that the next step reads again. So nothing is kept in memory but refusals of the API server.

Needs list on pods and namespaces, patch on pods, patch on pods/resize; get on one Secret, and create on Secrets.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from autoscaling.autoscale_settings import RequestOptions
from autoscaling.requests.pod_resources import (
    NAMES,
    RESIZE_LABEL,
    RESIZED_LABEL,
    OptedPod,
    PodReader,
    restored,
)
from autoscaling.requests.proven_records import RecordKey, read_key
from autoscaling.requests.resize_requests import (
    mark_body,
    namespaces_path,
    pods_path,
    resize_body,
    resize_path,
    unmark_body,
)
from autoscaling.requests.resizing import Resize, needs_of, resizes
from autoscaling.services_ahead import ServicesAhead
from base.errors import ForecastError
from base.excluded import ExcludedOptions
from base.local_hours import ChangeWindows
from forecast.service_key import ServiceKey
from kube.client.api_answer import NOT_SENT, ApiAnswer, is_gone
from kube.client.pod_writes import MERGE, pod_path
from kube.failure_notice import FailureNotice
from kube.session.session_calls import Requests, is_passing
from kube.status.pod_conditions import STRATEGIC_MERGE

logger = logging.getLogger(__name__)

_SECONDS: Final = 10.0
_TRIES: Final = 3
_CONFLICT: Final = 409
_FORBIDDEN: Final = 403
"""RBAC lacks a right, or a quota or a webhook of the cluster refuses this pod."""
_INVALID: Final = 422
"""Or an admission policy does."""
_MOST_REFUSALS: Final = 10_000
_NO_ROOM: Final = "its node has no room for its original request"

Free = Callable[[], Mapping[str, tuple[float, float]]]


class ResizeHand:
    """Implements autoscaling.autoscaler.Hand. For the event loop of the session.

    namespace: of the Secret with the key of the records
    hot      : share of its capacity above which a node is hot
    free     : node -> cores and bytes that no request takes (resize_room.free_on_nodes); no pod grows beyond it
    measured : cores that a pod uses now; None = not measured: then the forecast of now stands for it
    services : service of each pod by UID, as the live tables know it; of others their own labels say it
    excluded : services whose pods are resized no more, and restored
    changes  : when pods may be resized; they are restored at any time, which no pod may wait for
    done     : resizes so far, by direction; `restored`, `refused` and `conflict` in addition
    kept     : why pods kept their requests in the last step
    foreign  : pods with a record that is not ours, when last seen
    unread   : why pods could not be read then
    """

    name: Final = "resizes"

    def __init__(
        self,
        session: Requests,
        options: RequestOptions,
        *,
        free: Free,
        namespace: str = "forecast-scheduler",
        hot: float,
        measured: Callable[[OptedPod], float | None] = lambda pod: None,
        services: Callable[[Collection[str]], Mapping[str, ServiceKey]] = lambda uids: {},
        excluded: ExcludedOptions,
        changes: ChangeWindows,
    ) -> None:
        self._session, self._options, self._free, self._measured = session, options, free, measured
        self._services, self._namespace, self._hot = services, namespace, hot
        self._excluded, self._changes = excluded, changes
        self._key = RecordKey()
        self._room: dict[str, list[float]] = {}  # what is left of it in this turn
        self._refused: dict[str, float] = {}  # UID -> when the API server refused a resize
        self.done: Final[Counter[str]] = Counter()
        self.kept: Counter[str] = Counter()
        self._none_asks = FailureNotice(logger, "no pod is resized")
        self.foreign: frozenset[str] = frozenset()
        self.unread: tuple[str, ...] = ()

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        """Resize the pods that ask, and restore those that ask no more. Raises ForecastError, see Hand.

        A pod that a quota or a webhook of the cluster refuses keeps no other from its turn.
        """
        if not self._options.resize.enabled:
            await self.retreat()
            return
        await self._begin(create_key=True)
        pods, errors = self._of_services(await self._listed()), list[ForecastError]()
        for pod in pods:
            if not pod.asks and pod.original is not None and not self._was_refused(pod, now):
                await self._collect(errors, self._restore(pod, now))
        asking = [pod for pod in pods if pod.asks and not self._was_refused(pod, now)]
        if closed := self._changes.closed(datetime.fromtimestamp(now, UTC), ahead.horizon.zone):
            self.kept[closed] += len(asking)
            asking = []
        found, kept = resizes(
            asking,
            needs_of(ahead, self._options, now, self._hot),
            self._options,
            now=now,
            free={node: (cores, size) for node, (cores, size) in self._room.items()},
            measured=self._measured,
        )
        self.kept += kept
        for resize in found:
            await self._collect(errors, self._carry_out(resize, now))
        if errors:
            raise errors[0]

    async def retreat(self) -> None:
        """Restore all pods that bear the record. Raises ForecastError where some could not be: ask again."""
        await self._begin(create_key=False)
        errors = list[ForecastError]()
        left = [pod.name for pod in await self._resized() if not await self._collect(errors, self._restore(pod))]
        if self.foreign:
            fields = {"pods": len(self.foreign), "such_as": next(iter(self.foreign))}
            logger.warning("pods with a record that is not ours keep their requests", extra=fields)
        if left:
            why = f" ({errors[0]})" if errors else f" ({_NO_ROOM})" if self.kept[_NO_ROOM] else ""
            raise ForecastError(
                f"{len(left)} pods keep our requests for now, such as {left[0]}{why}: they are tried again"
            )

    def metrics(self) -> Iterator[Metric]:
        """Resizes by what became of them, and pods that were left alone."""
        done = CounterMetricFamily(
            "forecast_autoscale_resizes",
            "Resizes of pods by what became of them: up, down, restored, refused, conflict.",
            labels=["outcome"],
        )
        for outcome, count in list(self.done.items()):
            done.add_metric([outcome], count)
        yield done
        kept = GaugeMetricFamily(
            "forecast_autoscale_kept_requests", "Pods that keep their requests in the last turn.", labels=["because"]
        )
        for why, count in list(self.kept.items()):
            kept.add_metric([why], count)
        yield kept
        yield GaugeMetricFamily(
            "forecast_autoscale_foreign_records",
            "Pods with a record of original requests that is not ours; they are left alone.",
            value=float(len(self.foreign)),
        )
        yield GaugeMetricFamily(
            "forecast_autoscale_unreadable_pods",
            "Pods that could not be read in the last turn.",
            value=float(len(self.unread)),
        )

    # Inside

    async def _begin(self, *, create_key: bool) -> None:
        self._key = await read_key(self._session, self._namespace, create=create_key)
        self._room = {node: list(amounts) for node, amounts in self._free().items()}
        self.unread, self.kept = (), Counter()

    async def _collect(self, errors: list[ForecastError], work: Coroutine[Any, Any, bool]) -> bool:
        """Return what the work on one pod returns; False = it failed, and `errors` has one more."""
        try:
            return await work
        except ForecastError as error:
            errors.append(error)
        except Exception as error:  # what nobody thought of in one pod is no reason to leave the others
            logger.exception("a pod could not be resized")
            errors.append(ForecastError(f"a pod could not be resized: {type(error).__name__}: {error}: see the log"))
        return False

    def _reader(self, asking: frozenset[str] = frozenset()) -> PodReader:
        return PodReader(self._key.is_ours, asking)

    def _of_services(self, pods: list[OptedPod]) -> list[OptedPod]:
        """Return the pods with their services; those of excluded services ask no more."""
        known, found = self._services([pod.uid for pod in pods]), list[OptedPod]()
        for pod in pods:
            service = known.get(pod.uid, pod.service)
            why = self._excluded.why(service.namespace, service.kind, service.name)
            if why and pod.asks:
                self.kept[why] += 1
            found.append(replace(pod, service=service, asks=pod.asks and not why))
        return found

    async def _listed(self) -> list[OptedPod]:
        """Pods that ask, by themselves or by their namespace, and pods that bear the record; each once."""
        answer = self._usable(await self._get(namespaces_path(f"{RESIZE_LABEL}=true")), "list on namespaces")
        asking = frozenset(str(one["metadata"]["name"]) for one in _items(answer.body))
        found = {pod.uid: pod for pod in await self._pods(f"{RESIZE_LABEL}=true")}
        found |= {pod.uid: pod for pod in await self._pods(f"{RESIZED_LABEL}=true", asking=asking)}
        for namespace in sorted(asking):
            found |= {pod.uid: pod for pod in await self._pods("", namespace=namespace, asking=asking)}
        self._report(found.values())
        if found:
            self._none_asks.succeeded()
        else:
            self._none_asks.failed(f"no pod and no namespace has the label {RESIZE_LABEL}: true (docs/use/requests.md)")
        return list(found.values())

    async def _resized(self) -> list[OptedPod]:
        found = await self._pods(f"{RESIZED_LABEL}=true")
        self._report(found)
        return found

    def _report(self, pods: Collection[OptedPod]) -> None:
        """Tell of records that are not ours, once each, and of pods that cannot be read."""
        foreign = frozenset(f"{pod.namespace}/{pod.name}" for pod in pods if pod.is_foreign)
        if new := foreign - self.foreign:
            logger.warning(
                "records of original requests are not ours: their pods keep the requests that they have",
                extra={"pods": len(foreign), "such_as": min(new)},
            )
        self.foreign = foreign
        if self.unread:
            logger.warning("pods were left out", extra={"pods": len(self.unread), "why": self.unread[0]})

    async def _pods(
        self, selector: str, *, namespace: str = "", asking: frozenset[str] = frozenset()
    ) -> list[OptedPod]:
        found: list[OptedPod] = []
        token = ""
        while True:
            answer = await self._get(pods_path(selector, namespace=namespace, token=token))
            pods, token, unread = self._reader(asking).page(self._usable(answer, "list on pods").body)
            found += pods
            self.unread = tuple(dict.fromkeys((*self.unread, *unread)))
            if not token:
                return found

    async def _carry_out(self, resize: Resize, now: float) -> bool:
        """Whether it was; raises as `_went_well` does."""
        pod = resize.pod
        if pod.original is None:
            marked = await self._patch(pod_path(pod), mark_body(pod, self._key), MERGE)
            if marked.status in (_FORBIDDEN, _INVALID):
                self._remember(pod, now)
            if not self._went_well(marked, "patch on pods"):
                return False
            again = self._reader().pod(marked.body)
            if again is None or again.requests != pod.requests:
                return False  # another client changed it in the meantime: the next step looks again
            pod = again
        answer = await self._patch(resize_path(pod), resize_body(pod, resize.requests), STRATEGIC_MERGE)
        if answer.status == _FORBIDDEN:
            self._remember(pod, now)
        if self._went_well(answer, "patch on pods/resize"):
            self.done[resize.direction.value] += 1
            return True
        if not is_gone(answer) and answer.status != _CONFLICT:
            self._remember(pod, now)
            logger.warning("a pod was not resized", extra={"pod": f"{pod.namespace}/{pod.name}", "why": answer.text})
        return False

    async def _restore(self, pod: OptedPod, now: float | None = None) -> bool:
        """Restore the original requests of a pod and remove the record; whether nothing is left to do.

        now : to remember that the API server refuses it; None = it is asked again at once
        """
        current: OptedPod | None = pod
        for _ in range(_TRIES):
            if current is None or current.original is None:
                return True
            step = self._step_back(current)
            if step is None:
                self.kept[_NO_ROOM] += 1
                return False
            path, body, content_type = step
            answer = await self._patch(path, body, content_type)
            if is_gone(answer):
                return True
            if answer.is_success:
                after = self._reader().pod(answer.body)
                self._note_restored(current, after)
                current = after
            elif answer.status == _CONFLICT:
                self.done["conflict"] += 1
                answer = await self._get(pod_path(pod))
                if is_gone(answer):
                    return True
                current = self._reader().pod(self._usable(answer, "get on pods").body)
                current = current if current is not None and current.uid == pod.uid else None
            else:
                if now is not None:
                    self._remember(pod, now)
                self._went_well(answer, "patch on pods and pods/resize")
                return False
        return current is None or current.original is None

    def _step_back(self, pod: OptedPod) -> tuple[str, bytes, str] | None:
        """The next of the two writes that restore a pod; None = its node has no room for more."""
        target, is_whole = restored(pod, self._room.get(pod.node, (0.0, 0.0)))
        if target != pod.requests:
            return resize_path(pod), resize_body(pod, target), STRATEGIC_MERGE
        return (pod_path(pod), unmark_body(pod), MERGE) if is_whole else None

    def _note_restored(self, before: OptedPod, after: OptedPod | None) -> None:
        """What a pod has grown, no other may have in this turn; what it shrank is free once the kubelet has done it."""
        self.done["restored"] += after is not None and after.original is None
        room = self._room.get(before.node)
        if after is not None and room is not None:
            for column, resource in NAMES.items():
                room[column] -= max(after.total(resource) - before.total(resource), 0.0)

    def _went_well(self, answer: ApiAnswer, right: str) -> bool:
        """Whether it was carried out. Raises ForecastError where the API server is not there or forbids it."""
        if answer.is_success:
            return True
        if is_passing(answer) or answer.status in (NOT_SENT, 401, _FORBIDDEN):
            self._usable(answer, right)
        self.done["conflict" if answer.status == _CONFLICT else "refused"] += not is_gone(answer)
        return False

    def _usable(self, answer: ApiAnswer, right: str) -> ApiAnswer:
        if not answer.is_success:
            raise ForecastError(f"pods are not resized: {answer.text}; it needs {right}, and is tried again")
        return answer

    def _was_refused(self, pod: OptedPod, now: float) -> bool:
        return now - self._refused.get(pod.uid, -float("inf")) < self._options.resize.retry

    def _remember(self, pod: OptedPod, now: float) -> None:
        if len(self._refused) >= _MOST_REFUSALS:
            self._refused.clear()
        self._refused[pod.uid] = now

    async def _get(self, path: str) -> ApiAnswer:
        return await self._session.request("GET", path, None, seconds=_SECONDS)

    async def _patch(self, path: str, body: bytes, content_type: str) -> ApiAnswer:
        return await self._session.request("PATCH", path, body, content_type=content_type, seconds=_SECONDS)


def _items(body: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(body)["items"]
    return found
