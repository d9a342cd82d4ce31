"""The report of a run as one object: for the JSON file, for the page and for the metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from base.arrays import Bools, Floats
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_findings import ModelFinding
from forecast.resources import RESOURCES
from forecast.usage_limits import CutSeries
from trainer.gate.gate_verdict import GateReport
from trainer.history.cleaning import CleaningReport
from trainer.issued_forecasts import IssuedForecasts
from trainer.run_metrics import RunFigures
from trainer.run_report.earlier_nights import Changes, IssuedScore, changes_between, score_issued
from trainer.run_report.learned import (
    Capacities,
    LearnedService,
    RegressionCondition,
    capacities_of,
    identified_load_share,
    learned_services,
    regression_conditions,
)
from trainer.run_report.saving import RealisedSaving


def measured_share(history: History) -> Floats:
    """Measured share of the half hours in which a service had pods: (n_resources, n_days), NaN = no service had any."""
    expected = _expected(history)  # (n_services, n_days, 48)
    n_expected = expected.sum(axis=(0, 2))
    measured = (np.isfinite(history.usage_per_pod) & expected[:, None]).sum(axis=(0, 3))  # (n_resources, n_days)
    return np.where(n_expected > 0, measured / np.maximum(n_expected, 1), np.nan)


def gap_slots(history: History) -> dict[str, int]:
    """Half hours of services that were not measured on the last day; resources that never are, are absent."""
    expected = _expected(history)[:, -1]  # (n_services, 48)
    return {
        RESOURCES[index].name: int((expected & ~np.isfinite(history.usage_per_pod[:, index, -1])).sum())
        for index in _measured_at_all(history)
    }


def expected_slots(history: History) -> dict[str, int]:
    """Half hours of the last day in which services had pods, of which `gap_slots` are some; of the same resources."""
    n_expected = int(_expected(history)[:, -1].sum())
    return {RESOURCES[index].name: n_expected for index in _measured_at_all(history)}


def _measured_at_all(history: History) -> list[int]:
    """Return indices of resources that were measured on some day."""
    ever: Bools = np.any(np.isfinite(history.usage_per_pod), axis=(0, 2, 3))  # (n_resources,)
    return [index for index in range(len(RESOURCES)) if ever[index]]


def _expected(history: History) -> Bools:
    """When a service had pods, as seen, or as last seen where nothing at all was: (n_services, n_days, 48)."""
    replicas = history.replicas.reshape(len(history.services), -1)
    known = np.isfinite(replicas)
    last_known = np.maximum.accumulate(np.where(known, np.arange(replicas.shape[1]), -1), axis=1)
    seen = np.take_along_axis(replicas, np.maximum(last_known, 0), axis=1)
    expected: Bools = (last_known >= 0) & (np.nan_to_num(seen) > 0)
    return expected.reshape(history.replicas.shape)


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run read, learned, decided and published.

    version        : as published; "" = nothing was
    created        : aware time of the run
    recorded_share : share of the samples read tonight that came from recording rules; None = none was read
    stage_seconds  : stage -> seconds
    measured       : (n_resources, n_days) share of the services' half hours that was measured; NaN = no pods at all
    cut            : series cut because their nodes cannot have used as much
    names          : services and nodes of the history, which `cut` counts by
    changes        : None = there was no model before
    findings       : what does not add up
    remarks        : of the reading, about the server
    saving         : what came of the saving that `capacity` promised; None = nothing was promised yet
    """

    version: str
    created: datetime
    time_zone: str
    days: tuple[date, ...]
    first_day: date
    n_nodes: int
    recorded_share: float | None
    stage_seconds: Mapping[str, float]
    measured: Floats
    gap_slots: Mapping[str, int]
    expected_slots: Mapping[str, int]
    cleaning: tuple[str, ...]
    cut: tuple[CutSeries, ...]
    names: tuple[tuple[str, ...], tuple[str, ...]]
    services: tuple[LearnedService, ...]
    identified_load_share: Mapping[str, float]
    regression: Mapping[str, RegressionCondition]
    issued: tuple[IssuedScore, ...]
    gate: GateReport
    changes: Changes | None
    capacities: Capacities
    findings: tuple[ModelFinding, ...] = ()
    remarks: tuple[str, ...] = ()
    saving: RealisedSaving | None = None

    @property
    def job_owners(self) -> tuple[int, int]:
        """How many services are Job owners, and of how many of them the run length is known."""
        runs = [service.runs for service in self.services if service.runs is not None]
        return len(runs), sum(found.median_seconds is not None for found in runs)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON without NaN."""
        return {
            "version": self.version or None,
            "created": self.created.isoformat(),
            "time_zone": self.time_zone,
            "history": {
                "first_day": self.days[0].isoformat(),
                "last_day": self.days[-1].isoformat(),
                "days": len(self.days),
                "nodes": self.n_nodes,
                "services": len(self.services),
                "job_owners": self.job_owners[0],
                "job_owners_with_runs": self.job_owners[1],
                "recorded_share": self.recorded_share,
                "cleaning": list(self.cleaning),
                "cut": [
                    {
                        "service": self.names[0][one.service],
                        "node": self.names[1][one.node],
                        "resource": RESOURCES[one.resource].name,
                        "half_hours": one.slots,
                        "largest_ratio": round(one.ratio, 1) if math.isfinite(one.ratio) else None,
                    }
                    for one in self.cut
                ],
                "measured_share": {
                    resource.name: {
                        day.isoformat(): None if math.isnan(share) else round(float(share), 4)
                        for day, share in zip(self.days, self.measured[r], strict=True)
                    }
                    for r, resource in enumerate(RESOURCES)
                },
                "gap_slots": dict(self.gap_slots),
                "expected_slots": dict(self.expected_slots),
            },
            "findings": [one.to_json() for one in self.findings],
            "remarks": list(self.remarks),
            "saving": self.saving.to_json() if self.saving else None,
            "forecast_from": self.first_day.isoformat(),
            "stage_seconds": dict(self.stage_seconds),
            "gate": self.gate.to_json(),
            "issued": [score.to_json() for score in self.issued],
            "changes": self.changes.to_json() if self.changes else None,
            "capacities": self.capacities.to_json(),
            "identified_load_share": dict(self.identified_load_share),
            "regression": {name: found.to_json() for name, found in self.regression.items()},
            "services": [service.to_json() for service in self.services],
        }

    def figures(self, finished: float | None) -> RunFigures:
        """The run's metrics. finished: seconds since 1970, None = nothing was published."""
        last = self.issued[-1].scores if self.issued else {}
        return RunFigures(
            finished=finished,
            stage_seconds=self.stage_seconds,
            history_days=len(self.days),
            services=len(self.services),
            nodes=self.n_nodes,
            gate=self.gate,
            issued_coverage={name: score.coverage95 for name, score in last.items()},
            identified_load_share=self.identified_load_share,
            gap_slots=self.gap_slots,
            expected_slots=self.expected_slots,
            findings=tuple(dict.fromkeys(one.finding for one in self.findings)),
            cut_series={r.name: sum(one.resource == i for one in self.cut) for i, r in enumerate(RESOURCES)},
        )


def run_report(
    *,
    version: str,
    created: datetime,
    model: PeakModel,
    before: PeakModel | None,
    history: History,
    issued: IssuedForecasts,
    gate: GateReport,
    cleaning: CleaningReport = CleaningReport(),  # noqa: B008 - frozen
    cut: Sequence[CutSeries] = (),
    recorded_share: float | None = None,
    stage_seconds: Mapping[str, float] | None = None,
    findings: Sequence[ModelFinding] = (),
    remarks: Sequence[str] = (),
    saving: RealisedSaving | None = None,
) -> RunReport:
    """The report of a run that published `model` after `before` (None = first run).

    issued : forecasts issued for days of the history, `load_issued(store, history.days[-28:])`
    """
    return RunReport(
        version=version,
        created=created,
        time_zone=history.calendar.time_zone,
        days=history.days,
        first_day=model.first_day,
        n_nodes=len(model.nodes),
        recorded_share=recorded_share,
        stage_seconds=dict(stage_seconds or {}),
        measured=measured_share(history),
        gap_slots=gap_slots(history),
        expected_slots=expected_slots(history),
        cleaning=tuple(cleaning.lines()),
        cut=tuple(cut),
        names=(tuple(str(service) for service in history.services), history.nodes),
        services=learned_services(model, history),
        identified_load_share=identified_load_share(model),
        regression=regression_conditions(model),
        issued=score_issued(history, issued),
        gate=gate,
        changes=changes_between(before, model),
        capacities=capacities_of(model, history),
        findings=tuple(findings),
        remarks=tuple(remarks),
        saving=saving,
    )
