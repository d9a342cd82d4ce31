"""RebalancePlans on the API server: the record of what was planned, and of each step before it is taken.

A status is written on top of the version that was read, or not at all: a replica that does not know the newest record
cannot write over it. After a lost answer the writer reads the plan again, and sees whether it was written.

Needs get, list, create and delete on rebalanceplans, and patch on rebalanceplans/status.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from base.errors import ForecastError
from kube.client.api_answer import ApiAnswer, is_gone
from kube.decoding.watched_kinds import REFUSED
from kube.session.session_calls import Requests, request_with_retries
from kube.status.status_patches import patch_status
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.plan_wire import (
    API_VERSION,
    DECODER,
    KIND,
    LIST_DECODER,
    MoveSpec,
    MoveStatus,
    PlanGrade,
    PlanJson,
    PlanMode,
    PlanPhase,
    PlanSpec,
    PlanStatus,
)

logger = logging.getLogger(__name__)

PLANS_PATH: Final = f"/apis/{API_VERSION}/rebalanceplans"

_CONFLICT: Final = 409
_MISSING: Final = 404
_SECONDS: Final = 10.0
_PAGE: Final = 50
_LONGEST_REASON: Final = 300


class RecordError(ForecastError):
    """The API server did not do what was asked of a plan."""


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """version: resourceVersion, as it was read; created: by the clock of the API server; is_going: it is being deleted,
    and a finalizer keeps it."""

    name: str
    uid: str
    version: str
    created: datetime
    spec: PlanSpec
    status: PlanStatus
    is_going: bool = False

    def status_of(self, move: MoveSpec) -> MoveStatus:
        """Return how far a move is; one without an entry is planned since the plan was made."""
        for one in self.status.moves:
            if one.uid == move.uid:
                return one
        return MoveStatus(move.uid, MoveState.PLANNED, self.spec.created_at)

    @property
    def is_active(self) -> bool:
        """Return whether something of the plan is still to be done."""
        return self.spec.mode is PlanMode.ON and not self.status.phase.is_final


class PlanRecords:
    """For the event loop of the session. Raises RecordError where the API server refuses or does not answer.

    left_out    : why, by name, of plans that the last list left out: foreign ones, and what cannot be read
    going       : of these, plans of ours that are being deleted
    """

    def __init__(
        self,
        session: Requests,
        *,
        why_foreign: Callable[[RebalancePlan], str] = lambda plan: "",
        seconds: float = _SECONDS,
    ) -> None:
        """
        why_foreign : why a plan is none of the rebalancer's; '' = it may be one. Others are not listed
        seconds     : timeout of one request
        """
        self._session, self._why_foreign, self._seconds = session, why_foreign, seconds
        self.left_out: Mapping[str, str] = {}
        self.going: tuple[RebalancePlan, ...] = ()

    async def create(self, name: str, spec: PlanSpec) -> RebalancePlan:
        """Record a new plan. A plan in shadow mode is over from the beginning: nothing of it is carried out.

        If the plan is there already with this very spec, an earlier answer was lost: it is returned.
        """
        body = msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})
        answer = await request_with_retries(
            self._session, "POST", f"{PLANS_PATH}?fieldValidation=Strict", body, seconds=self._seconds
        )
        if answer.status == _CONFLICT:
            known = await self.read(name)
            if known is None or known.spec != spec:
                raise RecordError(f"there is another RebalancePlan {name}: choose another name, or delete it")
            plan = known
        else:
            plan = _read_plan(_required(answer, f"RebalancePlan {name} was not created").body)
        if spec.mode is PlanMode.SHADOW and plan.status.phase is not PlanPhase.REPORTED:
            plan = (
                await self.update_status(plan, msgspec.structs.replace(plan.status, phase=PlanPhase.REPORTED)) or plan
            )
        return plan

    async def read(self, name: str) -> RebalancePlan | None:
        """Return the newest record of a plan; None = there is none."""
        answer = await self._get(_path(name))
        if answer.status == _MISSING:
            return None
        return _read_plan(_required(answer, f"RebalancePlan {name} was not read").body)

    async def list(self) -> tuple[RebalancePlan, ...]:
        """Return all plans, the oldest first. Foreign ones and what cannot be read are left out; the log says so."""
        plans, going = list[RebalancePlan](), list[RebalancePlan]()
        left_out: dict[str, str] = {}
        token = ""
        while True:
            # In pages: thousands of plans that others made are never held all at once.
            answer = _required(
                await self._get(f"{PLANS_PATH}?{urlencode({'limit': _PAGE, 'continue': token})}"),
                "RebalancePlans were not listed (is deploy/crds/rebalanceplans applied?)",
            )
            try:
                page = LIST_DECODER.decode(answer.body)
            except REFUSED as error:
                raise RecordError(f"the list of RebalancePlans cannot be read: {error}") from error
            for item in page.items or ():
                plan, why = self._judged(item)
                if plan is None or why:
                    left_out[_name(item) if plan is None else plan.name] = why
                    if plan is not None and plan.is_going and not self._why_foreign(plan):
                        going.append(plan)
                else:
                    plans.append(plan)
            token = (page.metadata.continue_ if page.metadata is not None else "") or ""
            if not token:
                break
        for name, why in left_out.items():
            if self.left_out.get(name) != why:
                logger.warning("a RebalancePlan is left out: delete it", extra={"why": why, "plan": name})
        self.left_out, self.going = left_out, tuple(going)
        return tuple(sorted(plans, key=lambda plan: (plan.spec.created_at, plan.name)))

    async def update_status(self, plan: RebalancePlan, status: PlanStatus) -> RebalancePlan | None:
        """Write all of the status but the grade; None = another writer was faster, or the plan is gone: read it again.

        After RecordError it is not known whether the status was written: read it again, too.
        """
        fields = {
            "phase": status.phase,
            "message": status.message or None,
            "stop": status.stop or None,
            "moves": status.moves,
        }
        return await self._patch_status(plan, fields)

    async def write_grade(self, plan: RebalancePlan, grade: PlanGrade) -> RebalancePlan | None:
        """Write the grade and nothing else; None as for update_status."""
        return await self._patch_status(plan, {"grade": grade})

    async def delete(self, name: str) -> None:
        """Delete a plan; one that is gone is fine."""
        answer = await request_with_retries(self._session, "DELETE", _path(name), b"{}", seconds=self._seconds)
        if not is_gone(answer):
            _required(answer, f"RebalancePlan {name} was not deleted")

    async def prune(self, keep: int) -> int:
        """Delete the oldest plans that are over, down to `keep` of them; returns how many were deleted."""
        over = [plan for plan in await self.list() if plan.status.phase.is_final]
        beyond = over[: max(0, len(over) - keep)]
        for plan in beyond:
            await self.delete(plan.name)
        return len(beyond)

    # Inside

    def _judged(self, item: msgspec.Raw) -> tuple[RebalancePlan | None, str]:
        """Return a plan, None = it cannot be read, and why it is left out; '' = it is not."""
        try:
            plan = _plan_of(DECODER.decode(item))
        except REFUSED as error:
            return None, f"it cannot be read: {error}"[:_LONGEST_REASON]
        return plan, "it is being deleted" if plan.is_going else self._why_foreign(plan)

    async def _patch_status(self, plan: RebalancePlan, fields: Mapping[str, Any]) -> RebalancePlan | None:
        # One try: whatever became of it, the next reading shows it, and the version keeps a second try from harm.
        answer = await patch_status(
            self._session, _path(plan.name), fields, version=plan.version, seconds=self._seconds
        )
        if answer.status in (_CONFLICT, _MISSING):
            return None
        return _read_plan(_required(answer, f"the status of RebalancePlan {plan.name} was not written").body)

    async def _get(self, path: str) -> ApiAnswer:
        return await request_with_retries(self._session, "GET", path, seconds=self._seconds, tries=2)


def _name(item: msgspec.Raw) -> str:
    """Return the name of a plan that cannot be read whole; '' = not even that."""
    try:
        return str(msgspec.json.decode(item)["metadata"]["name"])
    except (*REFUSED, KeyError, TypeError):
        return ""


def _path(name: str) -> str:
    return f"{PLANS_PATH}/{quote(name, safe='')}"


def _required(answer: ApiAnswer, what: str) -> ApiAnswer:
    if answer.status == 403:
        raise RecordError(f"{what}: {answer.text}: grant the rights in deploy/base/rebalancer/rbac.yaml")
    if not answer.is_success:
        raise RecordError(f"{what}: {answer.text or answer.status}")
    return answer


def _read_plan(body: bytes) -> RebalancePlan:
    try:
        return _plan_of(DECODER.decode(body))
    except REFUSED as error:
        raise RecordError(f"a RebalancePlan cannot be read: {error}") from error


def _plan_of(json: PlanJson) -> RebalancePlan:
    metadata = json.metadata
    return RebalancePlan(
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        created=metadata.creation_timestamp or datetime.fromtimestamp(0, UTC),
        spec=json.spec,
        status=json.status or PlanStatus(),
        is_going=metadata.deletion_timestamp is not None,
    )
