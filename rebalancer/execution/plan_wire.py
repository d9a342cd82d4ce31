"""A RebalancePlan as JSON, as msgspec types: the same structure and bounds as the schema in deploy/crds.

The spec never changes. The status holds an entry for each move that has begun or ended; any other move is planned.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from kube.decoding.wire import ListMetadata
from kube.decoding.wire_base import Time, Wire
from placement.reservations.watched_plans import MoveState

API_VERSION: Final = "forecast-scheduler.io/v1alpha1"
KIND: Final = "RebalancePlan"
MOST_MOVES: Final = 500
MOST_KNOWN: Final = 256

ShortName = Annotated[str, Meta(max_length=253)]
Uid = Annotated[str, Meta(max_length=64)]
Message = Annotated[str, Meta(max_length=512)]
Selector = Annotated[str, Meta(max_length=2048)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Heat = Annotated[float, Meta(ge=-1e9, le=1e9)]
"""Node half hours of heat: sums of them stay finite."""


class Trigger(StrEnum):
    """What the plan was made for: the coming day, or load that the forecast did not foresee."""

    NIGHT = "night"
    UNFORESEEN = "unforeseen"


class PlanMode(StrEnum):
    """Whether the plan is carried out, or only reported."""

    ON = "on"
    SHADOW = "shadow"


class PlanPhase(StrEnum):
    """State of a whole plan. Stopped: moves were left out because one got stuck, or the operator said so."""

    PLANNED = "Planned"
    RUNNING = "Running"
    COMPLETED = "Completed"
    STOPPED = "Stopped"
    REPORTED = "Reported"

    @property
    def is_final(self) -> bool:
        """Return whether the plan is over."""
        return self in (PlanPhase.COMPLETED, PlanPhase.STOPPED, PlanPhase.REPORTED)


class _Record(msgspec.Struct, rename="camel", gc=False, frozen=True, omit_defaults=True):
    """Fields with their default are not written."""


class MoveSpec(_Record, frozen=True, omit_defaults=True):
    """One pod from node to node. Names one pod and no other: kube.client.pod_writes.PodIdentity.

    service : Kind/name of its top owner, such as Deployment/cart
    source  : node that it sits on
    reason  : for people
    gain    : node half hours of heat that the move prevents
    partner : position in the plan of the move without which this one is worth nothing
    surge   : it is the only replica: one more is started before it goes
    """

    namespace: ShortName
    pod: ShortName
    uid: Uid
    service: Annotated[str, Meta(max_length=253, pattern="^[^/]+/[^/]+$")]
    source: ShortName = msgspec.field(name="from")
    to: ShortName
    reason: Message = ""
    gain: Heat = 0.0
    partner: Count | None = None
    surge: bool = False

    @property
    def name(self) -> str:
        """Return the name of the pod."""
        return self.pod


class Predicted(_Record, frozen=True, omit_defaults=True):
    """What the plan promises. Node half hours within the horizon; `risk` counts by the upper bound.

    heat      : what the planner brings down (rebalancer.planning.heat)
    most_gain : no plan within the budget brings the heat down by more
    gain      : heat less by the moves, by the expected load alone: what the grade compares with
    """

    hot_before: Count = 0
    hot_after: Count = 0
    risk_before: Count = 0
    risk_after: Count = 0
    heat_before: Heat = 0.0
    heat_after: Heat = 0.0
    most_gain: Heat = 0.0
    gain: Heat = 0.0
    horizon_hours: Annotated[float, Meta(ge=0, le=336)] = 0.0


class PlanSpec(_Record, frozen=True, omit_defaults=True):
    """
    mode         : what is done with the plan
    configured   : mode that was set then: off, shadow, on; it is more than `mode` after bad nights. '' = the same
    start_before : a move that has not begun by then is left out; None = it may begin whenever
    """

    created_at: Time
    trigger: Trigger
    mode: PlanMode
    moves: Annotated[tuple[MoveSpec, ...], Meta(max_length=MOST_MOVES)] = ()
    predicted: Predicted = msgspec.field(default_factory=Predicted)
    start_before: Time | None = None
    configured: Literal["", "off", "shadow", "on"] = ""


class MoveStatus(_Record, frozen=True, omit_defaults=True):
    """How far one move is.

    uid         : of the pod that moves
    since       : when it entered the state
    evicted_at  : when the pod was first seen to go
    ended_at    : when the move was over
    replacement : name of the pod in its place, with its UID and its node; '' = none was seen yet
    message     : why, for people
    owner       : of the pod as its own labels name it: replacements have the same
    selector    : of labels, by which replacements are listed
    newest      : creation of the newest pod of the owner before the eviction
    known       : UIDs of pods of the owner that were created about then: they are no replacements
    replicas    : of the Deployment before the surge; None = there was no surge
    outcome     : state in which a surge that is being withdrawn will end
    """

    uid: Uid
    state: MoveState
    since: Time
    evicted_at: Time | None = None
    ended_at: Time | None = None
    replacement: ShortName = ""
    replacement_uid: Uid = ""
    node: ShortName = ""
    message: Message = ""
    owner: Selector = ""
    selector: Selector = ""
    newest: Time | None = None
    known: Annotated[tuple[Uid, ...], Meta(max_length=MOST_KNOWN)] = ()
    replicas: Count | None = None
    outcome: MoveState | None = None


class PlanGrade(_Record, frozen=True, omit_defaults=True):
    """Predicted against realised gain, in the unit of MoveSpec.gain.

    verdict              : good, bad, no-moves, unknown
    prevented, newly_hot : half hours of nodes that were hot without the moves only, and with them only
    """

    predicted: Heat
    realised: Heat
    at: Time
    verdict: Literal["good", "bad", "no-moves", "unknown"] = "unknown"
    prevented: Count = 0
    newly_hot: Count = 0
    message: Message = ""


class PlanStatus(_Record, frozen=True, omit_defaults=True):
    """stop: why nothing more begins; '' = nothing speaks against it."""

    phase: PlanPhase = PlanPhase.PLANNED
    message: Message = ""
    stop: Message = ""
    moves: Annotated[tuple[MoveStatus, ...], Meta(max_length=MOST_MOVES)] = ()
    grade: PlanGrade | None = None


class PlanMetadataJson(Wire):
    """metadata of a plan."""

    name: ShortName
    uid: Uid = ""
    resource_version: str = ""
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


class PlanJson(Wire):
    """A RebalancePlan as the API server has it."""

    metadata: PlanMetadataJson
    spec: PlanSpec
    status: PlanStatus | None = None


class PlanListJson(Wire):
    """A page of a list; its items are decoded one by one."""

    items: list[msgspec.Raw] | None = None
    metadata: ListMetadata | None = None


DECODER: Final = msgspec.json.Decoder(PlanJson)
LIST_DECODER: Final = msgspec.json.Decoder(PlanListJson)


def moment(unix: float) -> datetime:
    """Return unix seconds as the API server takes them."""
    return datetime.fromtimestamp(unix, UTC)


def clipped(text: str, longest: int = 512) -> str:
    """Return as much of a text as a message may hold, in one line."""
    return " ".join(text.split())[:longest]
