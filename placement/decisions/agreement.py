"""How often pods went where they were advised to go, by rung of the degradation ladder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from placement.decisions.decision import Decision


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of some decisions.

    decisions  : how many
    as_advised : went to the very node
    as_good    : went to that or to another with as many points
    late       : answered after the deadline: kube-scheduler was given neutral scores
    """

    decisions: int
    as_advised: int
    as_good: int
    late: int

    @property
    def share(self) -> float:
        """as_good of all; NaN without decisions."""
        return self.as_good / self.decisions if self.decisions else float("nan")

    def to_json(self) -> dict[str, Any]:
        return {
            "decisions": self.decisions,
            "as_advised": self.as_advised,
            "as_good": self.as_good,
            "agreement": self.share,
            "late": self.late,
        }


def agreement_of(decisions: Iterable[Decision]) -> Agreement:
    """Over all of them."""
    n_decisions = as_advised = as_good = late = 0
    for decision in decisions:
        n_decisions += 1
        as_advised += decision.node == decision.advised_node
        as_good += decision.agrees
        late += decision.is_late
    return Agreement(n_decisions, as_advised, as_good, late)


def agreement_by_level(decisions: Iterable[Decision]) -> dict[str, Agreement]:
    """For each rung that occurs, by name in the order of the alphabet."""
    groups: dict[str, list[Decision]] = {}
    for decision in decisions:
        groups.setdefault(decision.level or "unknown", []).append(decision)
    return {level: agreement_of(groups[level]) for level in sorted(groups)}
