"""The figures of one nightly run as Prometheus metrics: for node_exporter's textfile collector or a Pushgateway.

A run is over long before a scrape, so it leaves its figures where another target is scraped. A Pushgateway that cannot
be reached is a warning: the model is published already.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import generate_latest, push_to_gateway

from base.errors import InputError, StoreError
from base.object_store import LocalStore
from forecast.backtest import BacktestScore
from trainer.gate.gate_verdict import GateReport, GateVerdict

logger = logging.getLogger(__name__)

PUSH_JOB = "forecast_scheduler_train"
_LEFTOVER_SECONDS = 86400.0  # of age: temporary files of runs that were killed


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What a run leaves behind as metrics; what is not known is left out of the mappings.

    finished              : end of the run, seconds since 1970 (UTC); None = it failed: the time of success is left out
    stage_seconds         : stage -> seconds it took
    history_days          : whole local days behind the model
    services, nodes       : how many the model knows
    gate                  : verdicts; losses of the candidate recipe on the days since the last cut-off
    issued_coverage       : resource -> share of last day's peaks within the 0.95 bounds that were issued for it
    identified_load_share : resource -> share of the load that is of services whose peak weight is identified
    gap_slots             : resource -> service half hours of the last day that were not measured
    expected_slots        : resource -> service half hours of the last day with running pods, of which these are some
    cut_series            : resource -> series of a service on a node cut because the node cannot have used as much
    findings              : names of what does not add up
    peaks_report          : whether the page of predicted against actual peaks was written; None = none is wanted
    """

    finished: float | None = None
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    history_days: int = 0
    services: int = 0
    nodes: int = 0
    gate: GateReport = GateReport()  # noqa: RUF009 - frozen
    issued_coverage: Mapping[str, float] = field(default_factory=dict)
    identified_load_share: Mapping[str, float] = field(default_factory=dict)
    gap_slots: Mapping[str, int] = field(default_factory=dict)
    expected_slots: Mapping[str, int] = field(default_factory=dict)
    cut_series: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    peaks_report: bool | None = None


def registry_of(figures: RunFigures) -> CollectorRegistry:
    """The figures as gauges in a registry of their own. Figures that are not known have no series."""
    registry = CollectorRegistry()

    def gauge(name: str, text: str, values: Mapping[tuple[str, ...], float | None], *labels: str) -> None:
        metric = Gauge(name, text, labels, registry=registry)
        for key, value in values.items():
            if value is not None and value == value:  # NaN: nothing was there to be measured
                (metric.labels(*key) if labels else metric).set(value)

    def by_resource(values: Mapping[str, float | None]) -> dict[tuple[str, ...], float | None]:
        return {(resource,): value for resource, value in values.items()}

    results = figures.gate.results
    candidates: dict[str, BacktestScore] = {name: r.candidate for name, r in results.items() if r.candidate is not None}
    gauge(
        "forecast_train_candidate_loss",  # forecast_backtest_loss is of the model in use, and of the services
        "Pinball loss of the daily peaks of services, relative to the peaks, that tonight's recipe fitted at the "
        "last model's cut-off had on the days since.",
        {(n, q): loss for n, s in candidates.items() for q, loss in (("0.5", s.loss50), ("0.95", s.loss95))},
        "resource",
        "quantile",
    )
    gauge(
        "forecast_train_issued_coverage",
        "Share of the daily peaks of services on the last day that lay within the 0.95 bound issued for that day.",
        by_resource(dict(figures.issued_coverage)),
        "resource",
    )
    gauge(
        "forecast_train_issued_loss_ratio",
        "Loss of tonight's recipe divided by that of the model in use on the days since the cut-off of the latter.",
        by_resource({name: result.loss_ratio for name, result in results.items()}),
        "resource",
    )
    gauge(
        "forecast_train_held_back",
        "1 if the gate kept the arrays of the model in use for this resource, else 0.",
        by_resource({name: float(result.verdict is GateVerdict.HELD_BACK) for name, result in results.items()}),
        "resource",
    )
    gauge(
        "forecast_train_bound_widening_ratio",
        "Factor by which the gate raised the 0.95 bounds of this resource, 1 if it did not.",
        by_resource({name: result.widening for name, result in results.items()}),
        "resource",
    )
    gauge(
        "forecast_train_identified_load_share",
        "Share of the load that is of services whose peak weight is identified by regression.",
        by_resource(dict(figures.identified_load_share)),
        "resource",
    )
    gauge(
        "forecast_train_data_gap_slots",
        "Half hours of services with running pods on the last day of the history that were not measured.",
        by_resource(dict(figures.gap_slots)),
        "resource",
    )
    gauge(
        "forecast_train_data_expected_slots",
        "Half hours of services with running pods on the last day of the history, measured or not.",
        by_resource(dict(figures.expected_slots)),
        "resource",
    )
    gauge(
        "forecast_train_cut_series",
        "Series of a service on a node of which half hours were cut: they claim more than the node itself used.",
        by_resource(dict(figures.cut_series)),
        "resource",
    )
    gauge(
        "forecast_train_findings",
        "1 for each kind of finding of the run: what was read, or the model, does not add up. No series = nothing was "
        "found.",
        {(name,): 1.0 for name in figures.findings},
        "finding",
    )
    gauge(
        "forecast_train_left_out",
        "1 if the published model has no forecast of this resource because it did not reproduce the last days, else 0.",
        by_resource({name: float(result.verdict is GateVerdict.LEFT_OUT) for name, result in results.items()}),
        "resource",
    )
    if figures.peaks_report is not None:
        gauge(
            "forecast_train_peaks_report_written",
            "1 if the page of predicted against actual peaks was written after the run, else 0; absent if not wanted.",
            {(): float(figures.peaks_report)},
        )
    gauge(
        "forecast_train_duration_seconds",
        "Time the last run spent in this stage, in seconds.",
        {(stage,): seconds for stage, seconds in figures.stage_seconds.items()},
        "stage",
    )
    gauge(
        "forecast_train_history_days",
        "Whole local days of history behind the model.",
        {(): figures.history_days},
    )
    gauge("forecast_train_services", "Services that the model knows.", {(): figures.services})
    gauge("forecast_train_nodes", "Nodes that the model knows.", {(): figures.nodes})
    if figures.finished is not None:
        gauge(
            "forecast_train_last_success_timestamp_seconds",
            "When the last run ended that left its night's model in use, in seconds since 1970.",
            {(): figures.finished},
        )
    return registry


def write_textfile(path: Path | str, figures: RunFigures) -> None:
    """Write the text format, all at once: the collector may read at any moment. The name must end in .prom.

    https://github.com/prometheus/node_exporter#textfile-collector. Raises InputError if it cannot be written.
    """
    path = Path(path)
    store = LocalStore(path.parent)  # its temporary files are not *.prom: the collector never reads them
    try:
        store.put(path.name, generate_latest(registry_of(figures)))
        store.remove_leftovers(time.time() - _LEFTOVER_SECONDS)
    except StoreError as error:
        raise InputError(
            f"the metrics file {path} cannot be written ({error}): give a path in a directory that is writable"
        ) from error


def push(url: str, figures: RunFigures, *, job: str = PUSH_JOB, timeout: float = 10.0) -> bool:
    """Replace the job's metrics at a Pushgateway by these; False, with a warning, if it did not take them.

    A failed run (`finished` is None) replaces the time of the last success, too: it pushes nothing.
    """
    if figures.finished is None:
        return False
    try:
        push_to_gateway(url, job=job, registry=registry_of(figures), timeout=timeout)
    except (OSError, ValueError, HTTPException) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        logger.warning("the Pushgateway did not accept the metrics", extra={"url": url, "error": reason})
        return False
    return True
