"""`train` from settings to report: which server, which history, which store, where per-series work runs, and the page
of peaks after it. The steps themselves are the trainer's.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from joblib import parallel_config

from base.errors import InputError, StoreError
from base.excluded import ExcludedOptions
from base.object_store import LocalStore, open_store
from base.progress import Progress
from forecast.calendar import Calendar
from forecast.history import History
from forecast.model_findings import ModelFinding
from forecast.onnx_model import load_model
from forecast.published_models import Registry
from forecast_scheduler.commands.fitted_history import fit_options
from forecast_scheduler.commands.history_directory import open_history
from forecast_scheduler.commands.promised_savings import saving_since
from forecast_scheduler.settings.document import Settings
from trainer.audit.examination import account
from trainer.history.cleaning import CleaningReport
from trainer.history.files import HistoryFiles
from trainer.history.moved_file import MovedServices
from trainer.history.user_lists import read_events
from trainer.history_update import Reading, read_new_days
from trainer.issued_forecasts import IssuedForecasts, load_issued
from trainer.nightly import Night, Stages, train_and_publish
from trainer.own_history_store import OwnHistory
from trainer.prometheus.http_answer import ImpossibleAnswer, PrometheusUnreachable
from trainer.prometheus.metrics_store import MetricsStore
from trainer.prometheus.prometheus_settings import PrometheusOptions
from trainer.run_lease import Check, hold_lease
from trainer.run_report.report_of_run import RunReport, run_report
from trainer.sampling.journal import is_recorded

if TYPE_CHECKING:
    from trainer.prometheus.prometheus_source import PrometheusSource

logger = logging.getLogger(__name__)

_ISSUED_DAYS_REPORTED: Final = 28
"""Last days whose forecasts, as they were published, the report of a run compares with usage."""

_EXCLUDED_NAMED: Final = 10
"""Excluded services that a run names; it counts the others."""

_REPORT_SECONDS: Final = 3600.0
"""After this time the page of peaks is given up."""

_SHOWN_CHARACTERS: Final = 500
"""Of what the command that makes the page of peaks says about its failure."""


@contextmanager
def work_on(backend: str | None, jobs: int, dask_scheduler: str | None) -> Iterator[None]:
    """Send the work of the block to a joblib backend; None: this process.

    dask_scheduler : address of the cluster; with backend dask only, and then needed
    Raises InputError if the backend is not known or the cluster does not answer.
    """
    if backend is None:
        if dask_scheduler is not None:
            raise InputError("a Dask scheduler is named without the backend: pass --backend dask, too")
        yield
        return
    if backend == "dask":
        with _dask_client(dask_scheduler), parallel_config(backend="dask"):
            yield
        return
    if dask_scheduler is not None:
        raise InputError(f"--dask-scheduler does not go with --backend {backend}: leave one of them out")
    try:
        configuration = parallel_config(backend=backend, n_jobs=jobs)
    except (ValueError, KeyError) as error:
        raise InputError(f"backend {backend!r} is not known to joblib: use loky, threading or dask") from error
    with configuration:
        yield


@contextmanager
def _dask_client(address: str | None) -> Iterator[None]:
    if address is None:
        raise InputError("backend dask needs a cluster: pass --dask-scheduler tcp://HOST:8786")
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("backend dask needs the extra: pip install 'forecast-scheduler[dask]'") from error
    try:
        client = Client(address, timeout="15s")
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"the Dask scheduler {address} does not answer ({error}): start it, or correct --dask-scheduler"
        ) from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"the Dask cluster at {address} has no workers: start some, or leave --backend out")
        yield


def open_source(settings: PrometheusOptions, store: MetricsStore) -> PrometheusSource:
    """The store, asked as the settings say; nothing is sent yet. Raises InputError."""
    # Tables of days bring pandas and pyarrow, 80 MB that services which only ask what is used now need not have.
    from trainer.prometheus.prometheus_source import PrometheusSource

    return PrometheusSource(store.connect(settings), settings)


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a run.

    reading : None where no server was read
    server  : what the server has, in a sentence
    remarks : what it does not have, and what in its figures does not balance
    files, history : what was learned from, with the services that are excluded
    """

    night: Night
    report: RunReport
    reading: Reading | None
    server: str
    remarks: tuple[str, ...]
    files: HistoryFiles
    history: History

    def remarks_on_input(self) -> Iterator[str]:
        """Yield what makes the forecast uncertain beside the findings: what is missing, assumed or hard to part."""
        yield from self.remarks
        yield from self.report.capacities.lines()
        for condition in self.report.regression.values():
            if condition.is_poor:
                yield condition.advice


def train_night(
    settings: Settings,
    registry: Registry,
    *,
    history: str,
    store: MetricsStore | None,
    force: bool,
    now: datetime,
    progress: Progress,
) -> Trained:
    """One run: read what is new, learn, publish. Whatever is written is under the lease; errors leave the model alone.

    history    : directory, or fsspec URL where it grows from a server
    store      : to read new days from; None: the history is used as it is
    """
    stages = Stages()
    source = own = reading = None
    server = ""
    remarks: tuple[str, ...] = ()
    options = fit_options(settings)
    # What is wrong with the input is found out before anything is written anywhere, the lease included.
    if settings.events is not None:
        read_events(settings.events)
    if settings.moved is not None:
        MovedServices.read(settings.moved)
    if options.foundation_model is not None:
        load_model(options.foundation_model)
    is_live = store is not None or is_recorded(history)
    if store is not None:
        source, own = open_source(settings.prometheus, store), OwnHistory(history)
        own.check_growable()
        if _resolved(own.url) == _resolved(registry.url):
            raise InputError(
                f"models and history are both at {own.url}: give --history and --models directories of their own"
            )
        remarks = source.check(now)
        try:
            server = next(source.inventory(now, progress).lines())
        except (PrometheusUnreachable, ImpossibleAnswer):
            raise
        except InputError as error:  # what is wrong right now need not be wrong with the days to be read
            remarks += (f"what the server has right now cannot be used: {error}",)
    else:
        with stages.stage("load"):
            files, known = _load(settings, Path(history), progress)
    with ExitStack() as held:
        places = dict.fromkeys(_resolved(url) for url in ([registry.url] if own is None else [registry.url, own.url]))
        checks = [held.enter_context(hold_lease(place)) for place in places]
        if source is not None and own is not None:
            with stages.stage("read"):
                reading = read_new_days(
                    source,
                    own,
                    now=now,
                    days=settings.prometheus.days,
                    keep_days=settings.train.keep_days,
                    calendar=Calendar(settings.time_zone or "UTC", settings.holiday_country),
                    before_write=lambda: _check(checks),
                    progress=progress,
                )
            remarks += tuple(remark.text for remark in reading.remarks if not remark.wrong)
            with stages.stage("load"), own.local(progress) as directory:
                files, known = _load(settings, directory, progress)
        whole = known
        known, left_out = _without_excluded(whole, settings.excluded)
        remarks += left_out
        with stages.stage("account"):
            findings = [one.short() for one in account(known, files.report, files.cut)]
            unlike = (remark for remark in (reading.remarks if reading else ()) if remark.wrong)
            findings += [ModelFinding(remark.cause, remark.text, "") for remark in unlike]
        with work_on(settings.train.backend, settings.train.jobs, settings.train.dask_scheduler):
            night = train_and_publish(
                known,
                registry,
                now=now,
                live=is_live,
                options=options,
                force=force,
                findings=findings,
                before_publish=lambda: _check(checks),
                stages=stages,
                progress=progress,
            )
        # Some flaws are met twice: in the server's answer, and in the stored history.
        counts = Counter(files.report.counts) + Counter(reading.counts if reading else {})
        report = run_report(
            version=night.version,
            created=now,
            model=night.model,
            before=night.previous,
            history=known,
            issued=_issued(registry.url, known.days[-_ISSUED_DAYS_REPORTED:], live=is_live),
            gate=night.gate,
            cleaning=CleaningReport(counts),
            cut=files.cut,
            recorded_share=reading.recorded_share if reading and reading.days else None,
            stage_seconds=stages.seconds,
            findings=night.findings,
            remarks=remarks,
            saving=saving_since(settings, open_store(registry.url), known),
        )
    return Trained(night, report, reading, server, remarks, files, whole)


def _issued(url: str, days: tuple[date, ...], *, live: bool) -> IssuedForecasts:
    """Forecasts issued for the days, for the report; the model is published, so a store that fails costs figures only.

    Runs on a history as it is look at days long past: what they publish is always after the fact.
    """
    try:
        return load_issued(open_store(url), days, after_the_fact=not live)
    except StoreError as error:
        logger.warning("the forecasts issued are not reported", extra={"url": url, "error": str(error)})
        return IssuedForecasts.none(days)


def _without_excluded(known: History, excluded: ExcludedOptions) -> tuple[History, tuple[str, ...]]:
    """Return the history without services that are left alone, and what to say of that. Raises InputError: no other."""
    out = np.array([bool(excluded.why(one.namespace, one.kind, one.name)) for one in known.services], dtype=np.bool_)
    if not out.any():
        return known, ()
    if out.all():
        raise InputError("excluded.namespaces and excluded.services leave no service to learn from: name fewer")
    names = [str(service) for service, is_out in zip(known.services, out, strict=True) if is_out]
    more = f" and {len(names) - _EXCLUDED_NAMED} more" if len(names) > _EXCLUDED_NAMED else ""
    n_services = "1 service is" if len(names) == 1 else f"{len(names)} services are"
    what = f"{n_services} excluded and not learned from: {', '.join(names[:_EXCLUDED_NAMED])}{more}"
    return known.without(out), (what,)


def _load(settings: Settings, directory: Path, progress: Progress) -> tuple[HistoryFiles, History]:
    files = open_history(settings, directory, progress)
    return files, files.history(progress=progress)


def _resolved(url: str) -> str:
    """One name for a local directory, however it is written: a run must not exclude itself."""
    store = open_store(url)
    return str(store.root.resolve()) if isinstance(store, LocalStore) else url


def _check(checks: list[Check]) -> None:
    for check in checks:
        check()


def write_peaks_report(html: Path, *, history: str, models: str, config: Path | None) -> str | None:
    """Run `forecast-scheduler report --html` on a history directory and the models that it was published to.

    config : settings file of the run, if it has one
    Returns None if the page was written, else why it was not, for people. The page before stays in that case.
    """
    if "://" in history:
        return f"the history is at {history}, and the page is made from a history directory"
    command = [sys.executable, "-m", "forecast_scheduler", "report"]
    command += [f"--history={history}", f"--models={models}", f"--html={html}"]
    command += [] if config is None else [f"--config={config}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_REPORT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:_SHOWN_CHARACTERS]
    if done.returncode == 0:
        return None
    said = " ".join(done.stderr.split()) or "it said nothing"
    return f"report ended with status {done.returncode}: {said[-_SHOWN_CHARACTERS:]}"
