"""Tonight beside earlier nights: what is different from the model before, and how the forecasts issued for past days
did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np

from forecast.backtest import BacktestScore, peak_scores, scored_series
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import RESOURCES
from trainer.gate.evidence import measured_peaks
from trainer.issued_forecasts import IssuedForecasts

MOVED_SHARE = 0.2
"""A peak that moves by less is ordinary."""

_SCALE_DAYS = 28


@dataclass(frozen=True, slots=True)
class PeakMove:
    """The expected peak of all pods of a service on the first day of the forecast, in base units.

    share_of_cluster : the change as a share of the sum of all services' peaks
    """

    service: str
    resource: str
    before: float
    after: float
    share_of_cluster: float


@dataclass(frozen=True, slots=True)
class Changes:
    """new, gone: services; moved: peaks that moved by more than a fifth, what matters most to the cluster first."""

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    moved: tuple[PeakMove, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"new": list(self.new), "gone": list(self.gone), "moved": [asdict(move) for move in self.moved]}


def changes_between(before: PeakModel | None, after: PeakModel) -> Changes | None:
    """Both models read on the first day of `after`; None without a model before.

    Peaks are those of the whole service (one pod x reference replicas), so that scaling out alone moves none but
    memory's. A service is new or gone if the one model expects pods of it and the other does not.
    """
    if before is None:
        return None
    day = after.first_day
    totals = []
    for model in (before, after):
        peak = model.service_peaks(day)[:, :, 0] * model.reference_replicas[:, None]  # (n_services, n_resources)
        present = model.reference_replicas > 0
        totals.append({key: peak[i] for i, key in enumerate(model.services) if present[i]})
    old, new = totals
    cluster = np.nansum(np.array(list(new.values())).reshape(-1, len(RESOURCES)), axis=0)
    moved = []
    for service in new.keys() & old.keys():
        for r, resource in enumerate(RESOURCES):
            was, now = float(old[service][r]), float(new[service][r])
            if np.isfinite(was) and np.isfinite(now) and abs(now - was) > MOVED_SHARE * was:
                share = (now - was) / cluster[r] if cluster[r] > 0 else 0.0
                moved.append(PeakMove(str(service), resource.name, was, now, float(share)))
    moved.sort(key=lambda move: (-abs(move.share_of_cluster), move.service, move.resource))
    return Changes(
        new=tuple(sorted(str(service) for service in new.keys() - old.keys())),
        gone=tuple(sorted(str(service) for service in old.keys() - new.keys())),
        moved=tuple(moved),
    )


@dataclass(frozen=True, slots=True)
class IssuedScore:
    """How the forecast issued for one day did. lead_days: 1 = issued at the midnight the day began with."""

    day: date
    lead_days: int
    version: str
    scores: Mapping[str, BacktestScore]

    def to_json(self) -> dict[str, Any]:
        return {
            "day": self.day.isoformat(),
            "lead_days": self.lead_days,
            "version": self.version,
            "resources": {name: score.to_json() for name, score in self.scores.items()},
        }


def score_issued(history: History, issued: IssuedForecasts) -> tuple[IssuedScore, ...]:
    """Losses as in the backtest (forecast/backtest.py), for the days of the history with an issued forecast."""
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
