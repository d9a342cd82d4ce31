"""From the figures of one resource to a verdict and its reason, in this order.

    forced on the command line                              FORCED              new arrays as they are
    no figures, and nothing held back before                NOTHING_TO_COMPARE  new arrays
    loss <= 1.02 x that of the model in use,
      and < that of the seasonal naive, and bounds hold     PASSED              new arrays
    bounds fail, those of the model in use, too,
      and the loss is <= 1.02 x that of the model in use    WIDENED             new arrays, wider bounds: a new world
    held back for 3 nights                                  WIDENED             new arrays, wider bounds
    otherwise, and where most of what the model in use
      knows was not measured since                          HELD_BACK           arrays of the model in use

Whatever the verdict, what does not reproduce the last days is not published (`withhold`): HELD_BACK, or LEFT_OUT where
no model in use has better arrays.

A second run on the same night finds no new day; what was decided that night then holds again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from typing import Any

from scipy.stats import binom

from forecast.backtest import BacktestScore
from trainer.gate.evidence import GateEvidence

_WORSE_THAN_CURRENT = 0.02  # share by which the loss may exceed that of the model in use
_FEWEST_FOR_NAIVE = 20  # series-days; with fewer the seasonal naive is noise. A night of 20 services must suffice
_LOWEST_COVERAGE = 0.85  # of peaks by the 0.95 bounds; 20 peaks, each held with 0.95, come down to it in 1 of 13 nights
_HIGHEST_COVERAGE = 0.995  # above it the report says that the bounds are too wide
_MOST_HELD_BACK_NIGHTS = 3  # the model in use ages: after these, a new one with wider bounds is the lesser harm
_SLACK = 0.05  # bounds fail when so few peaks covered are this unlikely at the lowest coverage allowed
_FEWEST_FOR_UPPER_END = 200
_LEAST_WIDENING, _MOST_WIDENING = 1.1, 4.0
_LEAST_MEASURED = 0.5  # of what the model in use knows; less is a broken query, not a quiet day


class GateVerdict(Enum):
    """What happens to a resource of tonight's model."""

    PASSED = "passed"
    HELD_BACK = "held_back"
    WIDENED = "widened"
    FORCED = "forced"
    NOTHING_TO_COMPARE = "nothing_to_compare"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict on one resource. candidate, current, naive: their scores, None = not compared.

    widening         : factor on the 0.95 bounds, 1 unless WIDENED
    held_back_nights : nights in a row, tonight included, that the resource has kept old arrays
    days             : on which they were compared
    """

    resource: str
    verdict: GateVerdict
    reason: str
    candidate: BacktestScore | None = None
    current: BacktestScore | None = None
    naive: BacktestScore | None = None
    widening: float = 1.0
    held_back_nights: int = 0
    days: tuple[date, ...] = ()

    @property
    def loss_ratio(self) -> float | None:
        """Loss of the candidate / loss of the model in use; None = not compared."""
        if self.candidate is None or self.current is None or not total_loss(self.current) > 0:
            return None
        return total_loss(self.candidate) / total_loss(self.current)

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "reason": self.reason,
            **{
                name: score.to_json() if score else None
                for name, score in (("candidate", self.candidate), ("current", self.current), ("naive", self.naive))
            },
            "loss_ratio": self.loss_ratio,
            "widening": self.widening,
            "held_back_nights": self.held_back_nights,
            "days": [day.isoformat() for day in self.days],
        }

    @classmethod
    def from_json(cls, resource: str, document: object) -> GateResult | None:
        """What a manifest says was decided; None if it says nothing that can be read."""
        if not isinstance(document, Mapping):
            return None
        try:
            return cls(
                resource=resource,
                verdict=GateVerdict(document["verdict"]),
                reason=str(document["reason"]),
                widening=float(document["widening"]),
                held_back_nights=int(document["held_back_nights"]),
                days=tuple(date.fromisoformat(day) for day in document.get("days", ())),
                **{
                    name: BacktestScore(**document[name])
                    for name in ("candidate", "current", "naive")
                    if document.get(name) is not None
                },
            )
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdicts on all resources. cut_off: that of the model in use, None = there is none to compare with."""

    results: Mapping[str, GateResult] = field(default_factory=dict)
    cut_off: date | None = None

    @classmethod
    def from_info(cls, gate: object) -> GateReport:
        """What stands in the info of a published model; resources of which nothing can be read are left out."""
        documents = gate.items() if isinstance(gate, Mapping) else ()
        results = {name: GateResult.from_json(name, document) for name, document in documents}
        return cls({name: result for name, result in results.items() if result is not None})

    def with_verdict(self, verdict: GateVerdict) -> tuple[str, ...]:
        """Names of the resources it was given."""
        return tuple(name for name, result in self.results.items() if result.verdict is verdict)

    def lines(self) -> list[str]:
        """One sentence per resource."""
        return [f"{name}: {result.reason}" for name, result in self.results.items()]

    def to_json(self) -> dict[str, Any]:
        return {
            "cut_off": self.cut_off.isoformat() if self.cut_off else None,
            "resources": {name: result.to_json() for name, result in self.results.items()},
        }


def total_loss(score: BacktestScore) -> float:
    """Both quantiles together."""
    return score.loss50 + score.loss95


def judge(
    resource: str,
    evidence: GateEvidence | None,
    *,
    force: bool = False,
    previous: GateResult | None = None,
    same_night: bool = False,
    why_nothing: str = "no day to compare",
    measured_share: float = math.nan,
) -> GateResult:
    """The verdict on one resource.

    force          : publish everything as it is
    evidence       : None = nothing could be compared, for the reason `why_nothing`
    previous       : the verdict stored with the model in use
    same_night     : the model in use has tonight's cut-off already
    measured_share : how much of what the model in use knows was measured since its cut-off; NaN = nothing was expected
    """
    if measured_share < _LEAST_MEASURED:
        found = f"only {measured_share:.0%} of what it knows was measured on the days since its cut-off"
        result = _hold_back(resource, found, _LEAST_WIDENING, previous)
    elif evidence is None or not math.isfinite(total_loss(evidence.candidate)):
        result = _without_evidence(resource, previous, same_night, why_nothing)
    else:
        result = _with_evidence(resource, evidence, previous)
        result = replace(
            result,
            candidate=evidence.candidate,
            current=evidence.current,
            naive=evidence.naive,
            days=evidence.days,
        )
    if force:
        if result.verdict in (GateVerdict.HELD_BACK, GateVerdict.WIDENED):
            reason = f"published as it is because it was forced; else: {result.reason}"
        else:
            reason = f"published as it is because it was forced, which the gate did not ask for: {result.reason}"
        result = replace(result, verdict=GateVerdict.FORCED, reason=reason, widening=1.0, held_back_nights=0)
    return result


def _without_evidence(resource: str, previous: GateResult | None, same_night: bool, why_nothing: str) -> GateResult:
    """Nothing new is known: what was held back stays so within its limit, and a night run twice ends the same."""
    if previous is not None and same_night and previous.verdict in (GateVerdict.HELD_BACK, GateVerdict.WIDENED):
        return replace(previous, reason=_once("decided earlier tonight: ", previous.reason))
    if previous is not None and previous.verdict is GateVerdict.HELD_BACK:
        if previous.held_back_nights < _MOST_HELD_BACK_NIGHTS:
            nights = previous.held_back_nights + 1
            reason = f"held back as last night ({nights} of at most {_MOST_HELD_BACK_NIGHTS} nights): {why_nothing}"
            return GateResult(resource, GateVerdict.HELD_BACK, reason, held_back_nights=nights)
        reason = (
            f"published after {previous.held_back_nights} nights of being held back, with bounds {_LEAST_WIDENING:g} "
            f"times as high: {why_nothing}"
        )
        return GateResult(resource, GateVerdict.WIDENED, reason, widening=_LEAST_WIDENING)
    return GateResult(resource, GateVerdict.NOTHING_TO_COMPARE, f"published, nothing to compare: {why_nothing}")


def _with_evidence(resource: str, evidence: GateEvidence, previous: GateResult | None) -> GateResult:
    ours, current, naive = total_loss(evidence.candidate), total_loss(evidence.current), total_loss(evidence.naive)
    n = evidence.candidate.n
    bounds_fail = _too_low(evidence.candidate)
    failures = []
    worse = ours > (1 + _WORSE_THAN_CURRENT) * current
    if worse:
        failures.append(
            f"its loss {ours:.4f} is {ours / current - 1 if current > 0 else math.inf:.1%} above the {current:.4f} of "
            f"the model in use ({_WORSE_THAN_CURRENT:.0%} is allowed)"
        )
    naive_judged = n >= _FEWEST_FOR_NAIVE
    if naive_judged and not ours < naive:
        failures.append(f"its loss {ours:.4f} is not below the {naive:.4f} of the same day last week")
    if bounds_fail:
        failures.append(
            f"{evidence.candidate.coverage95:.1%} of the peaks lie within its 0.95 bounds "
            f"(at least {_LOWEST_COVERAGE:.0%} is asked)"
        )
    on = f"on {n:,} {'node' if evidence.of_nodes else 'series'}-days"
    if not failures:
        reason = f"passed {on}: loss {ours:.4f}, model in use {current:.4f}, same day last week {naive:.4f}"
        reason += "" if naive_judged else " (too few to judge against the latter)"
        reason += f"; {evidence.candidate.coverage95:.1%} of the peaks within the 0.95 bounds"
        if n >= _FEWEST_FOR_UPPER_END and evidence.candidate.coverage95 > _HIGHEST_COVERAGE:
            reason += f", more than {_HIGHEST_COVERAGE:.1%}: they are wider than need be"
        return GateResult(resource, GateVerdict.PASSED, reason)
    found = f"{on} {'; '.join(failures)}"
    widening = min(max(evidence.widening, 1.0), _MOST_WIDENING)
    # Bounds that an earlier night widened are no sign that the world stayed as it was.
    current_widened = previous is not None and previous.verdict is GateVerdict.WIDENED
    current_fails = (
        current_widened or evidence.current.coverage95 <= evidence.candidate.coverage95 or _too_low(evidence.current)
    )
    if bounds_fail and current_fails and not worse:
        reason = (
            f"published with bounds {widening:.2f} times as high: {found}; those of the model in use "
            f"{'had to be widened before' if current_widened else 'fail, too'}, so what is measured has changed"
        )
        return GateResult(resource, GateVerdict.WIDENED, reason, widening=widening)
    return _hold_back(resource, found, widening, previous)


def _hold_back(resource: str, found: str, widening: float, previous: GateResult | None) -> GateResult:
    """Not published, unless that has lasted long enough; found: why."""
    nights = previous.held_back_nights if previous is not None else 0
    if nights >= _MOST_HELD_BACK_NIGHTS:
        widening = max(widening, _LEAST_WIDENING)
        reason = (
            f"published with bounds {widening:.2f} times as high after {nights} nights of being held back, "
            f"although {found}"
        )
        return GateResult(resource, GateVerdict.WIDENED, reason, widening=widening)
    reason = f"held back ({nights + 1} of at most {_MOST_HELD_BACK_NIGHTS} nights), the model in use stays: {found}"
    return GateResult(resource, GateVerdict.HELD_BACK, reason, held_back_nights=nights + 1)


def _too_low(score: BacktestScore) -> bool:
    """Whether so few peaks covered are a rare accident at the lowest coverage allowed (one-sided binomial test)."""
    if score.coverage95 >= _LOWEST_COVERAGE:
        return False
    covered = round(score.coverage95 * score.n)
    return bool(binom.cdf(covered, score.n, _LOWEST_COVERAGE) < _SLACK)


def _once(prefix: str, text: str) -> str:
    return text if text.startswith(prefix) else prefix + text
