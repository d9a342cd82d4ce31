"""What became of a policy document, and how the policies are doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class OutcomeKind(Enum):
    """The value is the label of the metric."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """message: one sentence for people."""

    kind: OutcomeKind
    message: str


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """Why what is there now is not in effect. at: unix seconds when that was first seen."""

    message: str
    at: float


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """As it is now.

    source         : where the document is, for people
    version, since : of the document in effect, and unix seconds from when on; None = there has been none
    policies       : names of the policies in effect, that of the settings included
    refusal        : None = the document that was seen last is in effect
    unknown        : pods whose annotation names no policy, so far
    """

    source: str
    version: str | None
    since: float | None
    policies: tuple[str, ...]
    n_rules: int
    default: str | None
    refusal: PolicyRefusal | None
    outcomes: dict[OutcomeKind, int]
    unknown: int
