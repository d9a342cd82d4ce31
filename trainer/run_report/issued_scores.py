"""Error and coverage of the forecasts that were issued for past days, per night and resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from forecast.backtest import Score, peak_scores, scored_series
from forecast.history import History
from trainer.gate.evidence import measured_peaks
from trainer.issued_forecasts import IssuedForecasts

_SCALE_DAYS = 28


@dataclass(frozen=True, slots=True)
class IssuedScore:
    """How the forecast issued for one day did. lead_days: 1 = issued at the midnight the day began with."""

    day: date
    lead_days: int
    version: str
    scores: Mapping[str, Score]

    def to_json(self) -> dict[str, Any]:
        return {
            "day": self.day.isoformat(),
            "lead_days": self.lead_days,
            "version": self.version,
            "resources": {name: score.to_json() for name, score in self.scores.items()},
        }


def score_issued(history: History, issued: IssuedForecasts) -> tuple[IssuedScore, ...]:
    """Losses as in the backtest (docs/understand/backtest.md), for the days of the history with an issued forecast."""
    used, scale = scored_series(history.usage_per_pod[:, :, -_SCALE_DAYS:])
    issued = issued.aligned(history.services)
    result = []
    for position, day in enumerate(issued.days):
        if day not in history.days or not issued.lead_days[position]:
            continue
        forecasts = {"issued": issued.peaks[:, :, [position]]}
        scores = peak_scores(forecasts, measured_peaks(history, (day,)), used, scale)
        known = {name: by_name["issued"] for name, by_name in scores.items() if by_name["issued"].n}
        result.append(IssuedScore(day, int(issued.lead_days[position]), issued.versions[position], known))
    return tuple(result)
