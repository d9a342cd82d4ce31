"""`train`: read what is new, fit a model, publish it. One run a night."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ConfigOption,
    ContextOption,
    EventsOption,
    JsonOption,
    KubeconfigOption,
    ModelsOption,
    MovedOption,
    ReportOption,
    VerboseOption,
)
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures, write_text

if TYPE_CHECKING:
    from forecast_scheduler.commands.train_night import Trained
    from forecast_scheduler.settings.document import Settings

GROWING_HISTORY = "history"
"""Where the history grows by default."""

Prometheus = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="Prometheus server to read new days from; they are added to --history. Default: without --history, the "
        "one in the cluster.",
    ),
]
History = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="DIR-or-URL",
        help="History directory; with --prometheus one of our own that grows, also an fsspec URL. Default: history.",
    ),
]
DaysBack = Annotated[int | None, typer.Option("--days", metavar="N", min=1, help="Days that the first run reads back.")]
Metrics = Annotated[
    Path | None,
    typer.Option(
        "--metrics", metavar="FILE.prom", help="File for the run's metrics, for node-exporter's textfile collector."
    ),
]
Pushgateway = Annotated[
    str | None, typer.Option("--pushgateway", metavar="URL", help="URL of a Pushgateway for the run's metrics.")
]
Backend = Annotated[
    str | None,
    typer.Option("--backend", metavar="NAME", help="Run per-series work on a joblib backend: loky, threading or dask."),
]
Jobs = Annotated[int | None, typer.Option("--jobs", metavar="N", help="Pieces of work at once with --backend.")]
DaskScheduler = Annotated[
    str | None, typer.Option("--dask-scheduler", metavar="URL", help="An existing Dask cluster: tcp://HOST:8786.")
]
FoundationModel = Annotated[
    Path | None,
    typer.Option(
        "--foundation-model", metavar="PATH", help="Local .onnx file of a pretrained model: one more predictor."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Publish whatever the gate says, and train on less than a week of data.")
]


def train(
    prometheus: Prometheus = None,
    history: History = None,
    models: ModelsOption = None,
    events: EventsOption = None,
    moved: MovedOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    days: DaysBack = None,
    json: JsonOption = None,
    report: ReportOption = None,
    metrics: Metrics = None,
    pushgateway: Pushgateway = None,
    backend: Backend = None,
    jobs: Jobs = None,
    dask_scheduler: DaskScheduler = None,
    foundation_model: FoundationModel = None,
    force: Force = False,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Learn from Prometheus or from a history what every service will use, and publish the model.

    Whatever goes wrong, the model in use before stays in use.
    """
    shell = open_shell(config, verbose=verbose, json_file=json).with_files(events=events, moved=moved)
    train_options = {
        "metrics_file": metrics,
        "pushgateway": pushgateway,
        "backend": backend,
        "jobs": jobs,
        "dask_scheduler": dask_scheduler,
        "foundation_model": foundation_model,
    }
    from forecast_scheduler.commands.metrics_store import named_store_of, store_without_history
    from forecast_scheduler.settings.document import with_options

    settings = with_options(shell.settings, {"train": train_options, "prometheus": {"days": days}})
    for file in (json, report, settings.train.metrics_file):
        check_writable(file)
    place = history or settings.history or GROWING_HISTORY
    access = shell.cluster_access(kubeconfig, context)
    if prometheus is None and history is not None:
        store = None  # --history alone means this history as it is, even where the settings name a server
    elif (store := named_store_of(settings, prometheus, access)) is None and settings.history is None:
        store = store_without_history(settings, access)
    if store is None:
        place = _existing(place, shell)

    from forecast_scheduler.commands.model_registry import open_registry
    from forecast_scheduler.commands.train_night import train_night

    registry = open_registry(settings.models, models)
    with shell.progress() as progress:
        trained = train_night(
            settings,
            registry,
            history=place,
            store=store,
            force=force,
            now=datetime.now(UTC),
            progress=progress,
        )
    _tell(shell, trained, registry.url)
    write_figures(json, trained.report.to_json())
    if report is not None:
        from trainer.run_report.run_page import run_page

        write_text(report, run_page(trained.report))
    _leave_metrics(settings, trained, _peaks_report(shell, settings, place, registry.url, config))


def _existing(place: str, shell: Shell) -> str:
    """A history that no store adds days to. Raises InputError where there is none, as on a first night."""
    try:
        return str(shell.history(place))
    except InputError as error:
        raise InputError(
            f"{error}, or name the store to begin it from by --prometheus URL: the one in the cluster "
            "is looked for only where no history is named"
        ) from error


def _peaks_report(shell: Shell, settings: Settings, history: str, models: str, config: Path | None) -> bool | None:
    """Write the page of predicted against actual peaks; returns whether it was written, None if none is wanted."""
    html = settings.train.peaks_report
    if html is None:
        return None
    from forecast_scheduler.commands.train_night import write_peaks_report

    why_not = write_peaks_report(html, history=history, models=models, config=config)
    if why_not is None:
        shell.say(f"peaks report: {html.resolve()}")
    else:
        _note(shell, f"the peaks report {html} was not written, the model is published all the same: {why_not}")
    return why_not is None


def _tell(shell: Shell, trained: Trained, place: str) -> None:
    """Notes to stderr, the result to stdout."""
    night, report = trained.night, trained.report
    for line in report.cleaning:
        _note(shell, line)
    if night.readiness.cold_start:
        _note(
            shell,
            f"{night.readiness.measured_days} days are less than a week: this is a cold-start model, which leans on "
            "requests and on what similar services use; train again as the history grows",
        )
    for finding in report.findings:
        _note(shell, str(finding))
    for line in trained.remarks_on_input():
        _note(shell, line)
    reasons: dict[str, list[str]] = {}
    for name, result in night.gate.results.items() if night.published else ():
        reasons.setdefault(result.reason, []).append(name)
    for reason, names in reasons.items():
        _note(shell, f"gate: {', '.join(names)}: {reason}")
    if trained.server:
        shell.say(trained.server)
    if reading := trained.reading:
        for file in reading.damaged:
            _note(
                shell, f"{file} of the history was damaged: renamed to *.damaged, and read again if the server has it"
            )
        for day, why in reading.unreadable.items():
            _note(shell, f"{day} could not be read and is tried again the next night: {why}")
        shell.say(
            f"read {len(reading.days)} days, {reading.rows:,} rows"
            + (f", {reading.recorded_share:.0%} through recording rules" if reading.days else ""),
        )
    if report.saving is not None:
        shell.say(f"saving {report.saving.line()}")
    model = night.model
    owners, known = report.job_owners
    what = f"published {night.version}" if night.published else f"nothing new: {night.version} is in use already"
    shell.say(
        f"{what} at {place}: {len(model.services)} services, {len(model.nodes)} nodes, "
        + (f"run lengths of {known} of {owners} Jobs and CronJobs, " if owners else "")
        + f"learned from {model.trained_days} days, forecasts from {model.first_day} on",
    )


def _leave_metrics(settings: Settings, trained: Trained, peaks_report: bool | None) -> None:
    """Write and push the figures of the run. peaks_report: whether the page was written; None = none is wanted."""
    if settings.train.metrics_file is None and settings.train.pushgateway is None:
        return
    from trainer.run_metrics import push, write_textfile

    figures = replace(trained.report.figures(datetime.now(UTC).timestamp()), peaks_report=peaks_report)
    if settings.train.metrics_file is not None:
        write_textfile(settings.train.metrics_file, figures)
    if settings.train.pushgateway is not None:
        push(settings.train.pushgateway, figures)


def _note(shell: Shell, text: str) -> None:
    shell.err.print(f"note: {text}", highlight=False, markup=False, soft_wrap=True)
