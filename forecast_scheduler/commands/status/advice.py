"""What metrics say of the advice: how much of it kube-scheduler followed, and which pods a quota holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from forecast_scheduler.commands.status.facts import Sample

ADVICE_METRICS: Final = (
    "forecast_nominations_followed",
    "forecast_decisions_total",
    "forecast_canaries_total",
    "forecast_gated_by_quota_pods",
    "forecast_leader",
)


@dataclass(frozen=True, slots=True)
class Followed:
    """Since the advisors started: pods that went where advised and elsewhere, canaries by outcome.

    nominations : 1 = followed, 0.5 = doubted, 0 = ignored, None = before the first canary
    """

    as_advised: int
    elsewhere: int
    canaries: dict[str, int]
    nominations: float | None

    @property
    def rate(self) -> float | None:
        """Return the share of advised pods that went where advised; None = there was none."""
        bound = self.as_advised + self.elsewhere
        return self.as_advised / bound if bound else None


def followed(samples: Sequence[Sample]) -> Followed | None:
    """Return what became of the advice; None = no advisor is measured."""
    of_advisors = [one for one in samples if one.labels.get("job", "advisor").endswith("advisor")]
    # Others still show what they knew when they led.
    leaders = {one.labels.get("instance") for one in _named(of_advisors, "forecast_leader") if one.value}
    trusts = [
        one.value
        for one in _named(of_advisors, "forecast_nominations_followed")
        if not leaders or one.labels.get("instance") in leaders
    ]
    if not trusts:
        return None
    decided, canaries = dict[str, int](), dict[str, int]()
    for found, name in ((decided, "forecast_decisions_total"), (canaries, "forecast_canaries_total")):
        for one in _named(of_advisors, name):
            outcome = one.labels.get("outcome", "")
            found[outcome] = found.get(outcome, 0) + round(one.value)
    known = [trust for trust in trusts if trust == trust]
    return Followed(decided.get("as_advised", 0), decided.get("elsewhere", 0), canaries, min(known) if known else None)


def held_by_quota(samples: Sequence[Sample]) -> int:
    """Return the pods that wait because the quota of their tenant does not admit them."""
    return round(max((one.value for one in _named(samples, "forecast_gated_by_quota_pods")), default=0.0))


def _named(samples: Iterable[Sample], name: str) -> list[Sample]:
    return [one for one in samples if one.name == name]
