"""Room for the replacement of a pod that moves: a Reservation on the target, until the move ends.

    POST reservations/move-UID --> PATCH its status: Available on the target --a step later--> the eviction
    the move ends --> DELETE

The target is given, and the planner has judged it, so that no scheduler has to choose: the room is held whichever part
places pods. A killed rebalancer finds the Reservation by its name; what no rebalancer removes expires, or goes with its
plan. Where room cannot be held the move goes on without it, and a metric says so.

Needs list, create and delete on reservations, and patch on reservations/status.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

import msgspec

from cluster.tables.columns import whole_units
from kube.client.api_answer import ApiAnswer
from kube.failure_notice import FailureNotice
from kube.session.session_calls import Requests, is_passing
from kube.status.status_patches import patch_status
from placement.reservations.reservation import API_VERSION, KIND, ReservationPhase, moment
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import API_VERSION as PLAN_API_VERSION
from rebalancer.execution.plan_wire import KIND as PLAN_KIND
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus

logger = logging.getLogger(__name__)

LIFETIME: Final = "15m"
MADE_BY: Final = "forecast-scheduler.io/made-by"
"""Label of Reservations that the rebalancer made."""

REBALANCER: Final = "rebalancer"
_SECONDS: Final = 5.0
_MOST_TRIES: Final = 5
_MISSING: Final = 404
_CONFLICT: Final = 409


class MoveRoom(StrEnum):
    """What became of the room for a move."""

    HELD = "held"
    ABSENT = "absent"  # the definition is not installed
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class _Written:
    version: str
    phase: str


class MoveRooms:
    """For the event loop of the session.

    requests_of : what a pod requests, by its UID and Kubernetes resource name; None = the pod is not known
    count       : called once per move with what became of its room
    clock       : unix seconds
    """

    def __init__(
        self,
        session: Requests,
        requests_of: Callable[[str], Mapping[str, float] | None],
        *,
        count: Callable[[MoveRoom], None] = lambda room: None,
        clock: Callable[[], float],
    ) -> None:
        self._session, self._requests_of, self._count, self._clock = session, requests_of, count, clock
        self._rooms: dict[str, MoveRoom] = {}  # by UID of the pod that moves
        self._tries: dict[str, int] = {}
        self._notice = FailureNotice(
            logger, "no room is held for replacements: moves go on without", "room is held for replacements again"
        )

    async def hold(self, plan: RebalancePlan, move: MoveSpec, record: MoveStatus) -> bool:
        """Return whether the pod may go now; False = its room has just been held, or is to be tried again."""
        if move.uid in self._rooms:
            return True
        requests, owners = self._requests_of(move.uid), _owners(record.selector)
        if requests == {}:
            self._rooms[move.uid] = MoveRoom.ABSENT  # it needs none
            return True
        if not requests or not owners:
            return self._ended(move, MoveRoom.FAILED, "the pod, or a label of it, is not known")
        answer = await self._create(plan, move, requests, owners)
        written = _written(answer)
        if answer.status == _CONFLICT:  # an earlier try, or an earlier leader, has made it
            path = f"{_collection(move)}?fieldSelector=metadata.name%3D{quote(_name(move), safe='')}"
            answer = await self._session.request("GET", path, None, seconds=_SECONDS)
            written = _written(answer)
        if answer.is_success and written.phase in ("", ReservationPhase.PENDING):
            answer = await self._show(move, written.version)
        if answer.is_success or answer.status == _CONFLICT:  # a scheduler was faster: the node is the same
            self._ended(move, MoveRoom.HELD)
            return False
        if answer.status == _MISSING:
            return self._ended(move, MoveRoom.ABSENT, "deploy/crds/reservations is not installed")
        tries = self._tries[move.uid] = self._tries.get(move.uid, 0) + 1
        if is_passing(answer) and tries < _MOST_TRIES:
            return False
        why = "grant the rights in deploy/base/rebalancer/rbac.yaml" if answer.status == 403 else ""
        return self._ended(move, MoveRoom.FAILED, f"{answer.text} {why}".strip())

    async def release(self, move: MoveSpec) -> None:
        """The move is over. Best effort: what is left expires."""
        self._tries.pop(move.uid, None)
        if self._rooms.pop(move.uid, None) not in (MoveRoom.ABSENT, MoveRoom.FAILED):
            answer = await self._session.request("DELETE", _path(move), b"{}", seconds=_SECONDS)
            if not answer.is_success and answer.status != _MISSING:
                fields = {"pod": f"{move.namespace}/{move.pod}", "why": answer.text}
                logger.warning("room for a replacement is not given up, and left to expire", extra=fields)

    def forget(self) -> None:
        """Another replica may have led: what it held is looked at again."""
        self._rooms.clear()
        self._tries.clear()

    # Inside

    async def _create(
        self, plan: RebalancePlan, move: MoveSpec, requests: Mapping[str, float], owners: Mapping[str, str]
    ) -> ApiAnswer:
        of_plan = {"apiVersion": PLAN_API_VERSION, "kind": PLAN_KIND, "name": plan.name, "uid": plan.uid}
        body = msgspec.json.encode(
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {
                    "name": _name(move),
                    "namespace": move.namespace,
                    "labels": {MADE_BY: REBALANCER},
                    "ownerReferences": [of_plan],
                },
                "spec": {
                    "owners": {"matchLabels": dict(owners)},
                    "resources": {kind: _quantity(kind, amount) for kind, amount in requests.items()},
                    "lifetime": LIFETIME,
                    "node": move.to,
                },
            }
        )
        return await self._session.request("POST", _collection(move), body, seconds=_SECONDS)

    async def _show(self, move: MoveSpec, version: str) -> ApiAnswer:
        status = {"phase": ReservationPhase.AVAILABLE, "node": move.to, "since": moment(self._clock())}
        return await patch_status(self._session, _path(move), status, version=version, seconds=_SECONDS)

    def _ended(self, move: MoveSpec, room: MoveRoom, why: str = "") -> bool:
        self._rooms[move.uid] = room
        self._count(room)
        if room is MoveRoom.HELD:
            self._notice.succeeded()
        else:
            self._notice.failed(why, pod=f"{move.namespace}/{move.pod}")
        return True


def _owners(selector: str) -> Mapping[str, str]:
    """Return the labels of a selector as the record of a move has it: key=value, with commas."""
    pairs = (part.partition("=") for part in selector.split(",") if part)
    return {key: value for key, _, value in pairs}


def _quantity(kind: str, amount: float) -> str:
    units = whole_units(kind, amount)
    return f"{units}m" if kind == "cpu" else str(units)


def _written(answer: ApiAnswer) -> _Written:
    """Return what the API server has: the object that was made, or the only one of a list."""
    if not answer.is_success:
        return _Written("", "")
    try:
        body: Any = msgspec.json.decode(answer.body)
        one = body["items"][0] if "items" in body else body
        return _Written(str(one["metadata"]["resourceVersion"]), str((one.get("status") or {}).get("phase", "")))
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return _Written("", "")


def _name(move: MoveSpec) -> str:
    return f"move-{move.uid}"


def _collection(move: MoveSpec) -> str:
    return f"/apis/{API_VERSION}/namespaces/{quote(move.namespace, safe='')}/reservations"


def _path(move: MoveSpec) -> str:
    return f"{_collection(move)}/{quote(_name(move), safe='')}"
