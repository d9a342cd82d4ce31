"""The nightly run from a history on: is there enough of it, check, gate, fit, publish, and keep what was forecast."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from importlib.metadata import version as installed_version
from typing import Any

import numpy as np

from base.errors import ForecastError, InputError, StoreError
from base.object_store import open_store
from base.progress import Progress, silent
from forecast.fit import FitOptions, fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import artefact_of, model_of, within_limits
from forecast.model_findings import ModelFinding, findings_info, findings_of
from forecast.published_models import Registry
from forecast.resources import RESOURCES
from trainer.audit.finding import Finding, FindingKind
from trainer.gate.gate_run import apply_gate, run_gate
from trainer.gate.gate_verdict import GateReport
from trainer.gate.reproduction import Reproduction
from trainer.gate.withheld_resources import withhold
from trainer.issued_forecasts import store_issued

# Is there enough, and is it recent enough, to replace the model in use? Pure.
#
# measured days < 7, span < 7        cold start: published with a warning
# measured days < 7, span >= 7       refused: the history is mostly gap
# measured days < 7, model in use
#   knows 7 or more                  refused: a worse model must not replace it
# newest day over two days ago       refused when the source is live: monitoring has stopped

COLD_START_DAYS = 7
"""With less than a week of history no weekday has been seen twice, and most not at all."""

MEASURED_DAYS = "measured_days"
"""Where a published model's info keeps the number: its span may be mostly gap when it was forced."""

_STALE_DAYS = 2
"""The newest whole day may be the day before yesterday: just after midnight the last samples may still be missing."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainingReadiness:
    """measured_days: days of which at least half the slots hold usage."""

    measured_days: int

    @property
    def cold_start(self) -> bool:
        return self.measured_days < COLD_START_DAYS


def check_ready(
    history: History, previous: PeakModel | None, *, live_at: datetime | None, force: bool
) -> TrainingReadiness:
    """Raise InputError where tonight's model must not be fitted on this.

    previous : the model in use
    live_at  : the time, if the history comes from a live server; None: a history of any age is meant
    force    : train anyway, except on data that is not of these days
    """
    measured = measured_days(history)
    first, last = history.days[0], history.days[-1]
    if live_at is not None:
        _check_recent(last, live_at.astimezone(history.calendar.zone).date())
    ready = TrainingReadiness(measured)
    if force or not ready.cold_start:
        return ready
    if history.n_days >= COLD_START_DAYS:
        raise InputError(
            f"of the {history.n_days} days from {first} to {last} only {measured} hold data, {COLD_START_DAYS} are "
            "needed: look for gaps in the scraping of cAdvisor and kube-state-metrics, start a new history in another "
            "directory, or train anyway with --force"
        )
    known = 0 if previous is None else int(previous.info.get(MEASURED_DAYS, previous.trained_days))
    if known >= COLD_START_DAYS:
        raise InputError(
            f"the history holds {measured} days, but the model in use was trained on {known}: it "
            "stays in use; point --history at the history that grew so far, or publish anyway with --force"
        )
    return ready


def measured_days(history: History) -> int:
    """Days of which at least half the slots hold usage: of most pods, or of nodes where no pod is ever measured."""
    usage = np.isfinite(history.usage_per_pod)  # (n_services, n_resources, n_days, 48)
    best = int(usage.sum(axis=(0, 2, 3)).argmax())
    there = np.nan_to_num(history.replicas) > 0
    if usage[:, best].any():
        seen = (usage[:, best] & there).sum(axis=0) >= 0.5 * np.maximum(there.sum(axis=0), 1)
    else:
        seen = np.isfinite(history.node_usage).any(axis=(0, 1))
    return int(np.count_nonzero(seen.mean(axis=1) >= 0.5))


def _check_recent(last: date, today: date) -> None:
    if today - last > timedelta(days=_STALE_DAYS):
        raise InputError(
            f"the newest whole day of data is {last}, {(today - last).days} days ago: Prometheus has stopped "
            "scraping kube-state-metrics or cAdvisor, or forgot it, or `look --record` has ended; mend that first, the "
            "last model stays in use"
        )


def not_reproduced(failed: Sequence[Reproduction], n_services: int, n_nodes: int) -> Finding | None:
    """One finding for all resources that are not reproduced; None without any."""
    if not failed:
        return None
    names = {one.resource for one in failed}
    return Finding(
        FindingKind.NOT_REPRODUCED,
        n_services=n_services,
        n_nodes=n_nodes,
        load_share=np.array([float(resource.name in names) for resource in RESOURCES]),
        what="tonight's model does not reproduce the last days: "
        + "; ".join(f"{one.resource}: {one.reason()}" for one in failed),
        advice="do not trust a forecast of it: read the other findings of this run and of forecast-scheduler doctor, "
        "and compare the services that are named with the cluster's own dashboards",
    )


class Stages:
    """How long the stages of a run took."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time that the block takes to the stage."""
        started = self._clock()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self._clock() - started


@dataclass(frozen=True, slots=True)
class Night:
    """What came of a run.

    version   : the model in use after it
    published : False where a run before it had published the same already
    model     : what is in use; previous: what was in use before, None = nothing that could be read
    gate      : the verdicts; of a run that published nothing, those of the run that did
    findings  : what does not add up; of a run that published nothing, those of the run that did
    """

    version: str
    published: bool
    model: PeakModel
    previous: PeakModel | None
    gate: GateReport
    readiness: TrainingReadiness
    stages: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[ModelFinding, ...] = ()


def train_and_publish(
    history: History,
    registry: Registry,
    *,
    now: datetime,
    live: bool = False,
    options: FitOptions | None = None,
    force: bool = False,
    backtest: Mapping[str, Any] | None = None,
    findings: Sequence[ModelFinding] = (),
    before_publish: Callable[[], None] = lambda: None,
    stages: Stages | None = None,
    progress: Progress = silent,
) -> Night:
    """Fit a model on the whole history and publish it, resource by resource as the gate allows.

    now            : aware datetime that the manifest records
    live           : the history was just read from a server: it must be recent, and a night's second run does nothing
    force          : publish everything as it is, whatever the gate says
    backtest       : figures to publish with the model
    findings       : what does not add up in what was read; published with the model, and added to if the model does not
                     reproduce the last days
    before_publish : raises where the run must not publish any more, for instance because its lease was lost; asked
                     before anything is written, and again before the new version is put to use
    Raises InputError if there is not enough to learn from or if no resource reproduces the last days, CorruptArtefact
    if no loader would take what was learned, PublishError if the store cannot be written.
    """
    options, stages = options or FitOptions(), stages or Stages()
    recipe = f"{installed_version('forecast-scheduler')} {options!r}"
    previous = load_previous(registry, now)
    readiness = check_ready(history, previous, live_at=now if live else None, force=force)
    digest = history.digest()
    if live and not force and previous is not None and _is_done(previous, history, digest, recipe):
        version = registry.latest()
        assert version is not None
        _keep_forecasts(registry, previous, version)
        verdicts = GateReport.from_info(previous.info.get("gate"))
        return Night(
            version, False, previous, previous, verdicts, readiness, stages.seconds, findings_of(previous.info)
        )

    def fit_model(known: History, before: PeakModel | None) -> PeakModel:
        return fit(known, options, previous=before, progress=progress)

    with stages.stage("gate"):
        report = run_gate(history, previous, fit_model, force=force, progress=progress)
    with stages.stage("fit"):
        model = apply_gate(fit_model(history, previous), previous, report)
    model, held = within_limits(model)
    if held:
        logger.warning("forecasts beyond what a node can hold are held to it", extra={"arrays": ", ".join(held)})
    with stages.stage("reproduce"):
        withheld = withhold(history, model, previous, report, force=force)
        model, report = within_limits(withheld.model)[0], withheld.report  # parts of the model in use, too
    found = not_reproduced(withheld.failed, len(history.services), len(history.nodes))
    short = [*findings, *([] if found is None else [found.short()])]
    facts = {"recipe": recipe, MEASURED_DAYS: readiness.measured_days} | findings_info(short)
    model = replace(model, data_digest=digest, info={**model.info, **facts})
    with stages.stage("publish"):
        before_publish()
        artefact = artefact_of(model, now, dict(backtest) if backtest is not None else None)
        model_of(artefact, now)  # raises where a loader would refuse it
        version = registry.publish(artefact, before_use=before_publish)
        _keep_forecasts(registry, model, version)
    return Night(version, True, model, previous, report, readiness, stages.seconds, tuple(short))


def load_previous(registry: Registry, now: datetime) -> PeakModel | None:
    """The model in use, whose choice of predictors most services keep; None if there is none that can be read.

    A broken model in use is no reason to stop: a new one is the cure.
    """
    try:
        return model_of(registry.load(), now) if registry.latest() is not None else None
    except ForecastError as error:
        logger.warning("the model in use is not built upon", extra={"url": registry.url, "error": str(error)})
        return None


def _is_done(previous: PeakModel, history: History, digest: str, recipe: str) -> bool:
    """Whether the model in use is what this run would learn from."""
    return (
        previous.first_day == history.days[-1] + timedelta(days=1)
        and previous.data_digest == digest
        and previous.info.get("recipe") == recipe
    )


def _keep_forecasts(registry: Registry, model: PeakModel, version: str) -> None:
    """Store what was issued. The model is in use by now: a store that fails here costs figures, not the night."""
    try:
        store_issued(open_store(registry.url), model, version)
    except StoreError as error:
        logger.warning("the forecasts issued were not kept", extra={"url": registry.url, "error": str(error)})
