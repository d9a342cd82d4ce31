"""Bind: the node of a Reservation is written into its status; a pod is bound by the plugin that binds pods.

    PATCH .../reservations/NAME/status, of the version that was read --2xx--> Available
       |  refused, another version, gone --> not placed; the watch shows what is so now
       |  no answer
       v
    GET .../reservations of that name --Available on that node--> placed

Source of the rules about answers: kube/binding/binding_steps.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol
from urllib.parse import quote

from kube.binding.binding_steps import BindingResult, BindingVerdict
from kube.client.api_answer import ApiAnswer, is_gone
from kube.decoding.watched_kinds import decode_page
from kube.objects.objects import PodInfo
from kube.session.session_calls import Requests, is_passing
from kube.status.status_patches import patch_status
from placement.plugins import Bind
from placement.reservations.reservation import API_VERSION, Reservation, ReservationPhase, moment
from placement.reservations.reservations import Reservations
from placement.reservations.watched_reservations import WATCHED_RESERVATIONS
from placement.status import Status
from scheduler.binding.outcome import BindStatus, bind_status

_SECONDS: Final = 5.0
_MISSING: Final = 404
_CONFLICT: Final = 409


class _Looks(Bind, Protocol):
    """A plugin that binds pods and can look what became of one."""

    async def look(self, pod: PodInfo, node: str) -> BindStatus:
        """Return what became of a binding."""


class ReservationBinder:
    """Implements Bind, in place of the plugin that binds pods; to be called in the session's loop.

    otherwise  : binds pods
    devices_of : annotations that say which cards the room has; called without a lock
    """

    name: Final = "ReservationBinder"

    def __init__(
        self,
        session: Requests,
        reservations: Reservations,
        otherwise: _Looks,
        *,
        devices_of: Callable[[PodInfo, str], Mapping[str, str]] = lambda pod, node: {},
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._reservations, self._otherwise = session, reservations, otherwise
        self._devices_of, self._clock = devices_of, clock

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SUCCESS = bound, UNSCHEDULABLE = not bound, ERROR = not known."""
        if not pod.stands_in:
            return await self._otherwise.bind(pod, node)
        one = self._reservations.get(pod.uid)
        if one is None or one.phase is not ReservationPhase.PENDING or self._clock() >= one.until:
            return self._ended(BindingVerdict.GONE, f"Reservation {_names(pod)} waits for no node any more")
        change = {
            "phase": ReservationPhase.AVAILABLE,
            "node": node,
            "since": moment(self._clock()),
            "message": None,
            "devices": dict(self._devices_of(pod, node)) or None,
        }
        answer = await patch_status(self._session, reservation_path(one), change, version=one.version, seconds=_SECONDS)
        if answer.is_success:
            return self._ended(BindingVerdict.BOUND)
        if is_passing(answer):
            return await self.look(pod, node)
        if answer.status == _MISSING or is_gone(answer):
            return self._ended(BindingVerdict.GONE, f"Reservation {_names(pod)} is gone")
        return self._ended(BindingVerdict.REFUSED, _refusal(pod, answer))

    async def look(self, pod: PodInfo, node: str) -> BindStatus:
        """What became of a binding that is not known; UNSCHEDULABLE = it is not bound there."""
        if not pod.stands_in:
            return await self._otherwise.look(pod, node)
        known = self._reservations.get(pod.uid)
        if known is None:
            return self._ended(BindingVerdict.GONE, f"Reservation {_names(pod)} is gone")
        # A list of one: the right to list is there anyway.
        collection, _, name = reservation_path(known).rpartition("/")
        path = f"{collection}?fieldSelector=metadata.name%3D{name}"
        answer = await self._session.request("GET", path, None, seconds=_SECONDS)
        if not answer.is_success:
            return self._ended(BindingVerdict.UNKNOWN, f"Reservation {_names(pod)} is not known to have a node")
        found = [one for one in decode_page(WATCHED_RESERVATIONS, answer.body).objects if one.uid == pod.uid]
        if not found:
            return self._ended(BindingVerdict.GONE, f"Reservation {_names(pod)} is gone")
        now = found[0]
        if now.phase.is_final:
            return self._ended(BindingVerdict.GONE, f"Reservation {_names(pod)} waits for no node any more")
        if now.phase is ReservationPhase.PENDING:
            return self._ended(BindingVerdict.REFUSED, f"Reservation {_names(pod)} has no node")
        if now.node != node:
            return self._ended(BindingVerdict.ELSEWHERE, f"Reservation {_names(pod)} is on {now.node}", now.node)
        return self._ended(BindingVerdict.BOUND)

    def _ended(self, verdict: BindingVerdict, reason: str = "", node: str = "") -> BindStatus:
        return bind_status(self.name, BindingResult(verdict, reason, node))


def reservation_path(one: Reservation) -> str:
    """Return the path of a Reservation on the API server."""
    return f"/apis/{API_VERSION}/namespaces/{quote(one.namespace, safe='')}/reservations/{quote(one.name, safe='')}"


def _names(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.owner.name}"


def _refusal(pod: PodInfo, answer: ApiAnswer) -> str:
    if answer.status == _CONFLICT:
        return f"Reservation {_names(pod)} has changed since it was read"
    if answer.status == 403:
        return f"the API server forbids it (403): grant patch on reservations/status: {answer.text}"
    return f"the API server refuses a node to Reservation {_names(pod)}: {answer.text}"
