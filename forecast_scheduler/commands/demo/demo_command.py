"""`demo`: the whole way on the bundled sample, from history to before-and-after picture."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import ConfigOption, HistoryOption, VerboseOption
from forecast_scheduler.commands.shell import Shell, open_shell, write_figures, write_text
from forecast_scheduler.reports.history_tables import ServicePeak, baselines_table, peaks_table

if TYPE_CHECKING:
    from forecast.backtest import Backtest
    from forecast.history import History
    from forecast.model import PeakModel
    from trainer.history.files import HistoryFiles

SAMPLE = Path("data/sample")
N_PEAKS_SHOWN = 10

SecondsOption = Annotated[
    float | None,
    typer.Option(
        "--serve-seconds",
        metavar="N",
        min=0,
        help="Seconds until the scorer ends, for scripts; 0: do not start it. Default: serve until Ctrl-C.",
    ),
]
OutputOption = Annotated[
    Path, typer.Option("--output", metavar="DIR", help="Where the model, the figures and the report go.")
]


def demo(
    history: HistoryOption = None,
    output: OutputOption = Path("demo-output"),
    serve_seconds: SecondsOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Backtest, train and replay on the sample (or your own history), write a report, and serve the scorer's page."""
    shell = open_shell(config, verbose=verbose)
    directory = shell.history(history or sample_directory())
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create {output}: {error.strerror or error}; pass another --output DIR") from error

    from forecast.backtest import backtest
    from forecast.fit import fit
    from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned
    from forecast_scheduler.commands.model_registry import open_registry
    from forecast_scheduler.commands.run_replay import (
        doubled_table,
        replay_doubled,
        replay_history,
        replay_tables,
    )
    from scorer.replay.replay_page import replay_page
    from trainer.nightly import train_and_publish

    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
    tell_what_was_cleaned(shell, files)
    shell.say(
        f"{directory}: {len(known.services)} services on {len(known.nodes)} nodes, "
        f"{known.n_days} days until {known.days[-1]} ({known.calendar.time_zone})",
    )

    shell.say("\n1. How well can tomorrow's peaks be forecast? Every night anew, on what was known then.")
    with shell.progress() as progress:
        tested = backtest(known, lambda before, previous: fit(before, previous=previous), progress=progress)
    shell.show(peaks_table(largest_peaks(known, tested), day=tested.origins[-1]), baselines_table(tested.to_json()))
    write_figures(output / "backtest.json", tested.to_json())

    shell.say("\n2. The model that would be used tonight.")
    registry = open_registry(shell.settings.models, str(output / "models"))
    with shell.progress() as progress:
        published = train_and_publish(
            known,
            registry,
            now=datetime.now(UTC),
            backtest=tested.to_json(),
            progress=progress,
        )
    shell.say(f"published {published.version}: forecasts from {published.model.first_day} on")

    shell.say("\n3. What would placing by it have changed? The same pods, placed anew at 04:00 by each rule.")
    defaults = shell.settings.replay
    with shell.progress() as progress:
        hot = shell.settings.hot_share
        played = replay_history(
            files, known, at=None, days=defaults.days, seed=defaults.seed, hot=hot, progress=progress
        )
        doubled = replay_doubled(files, known, played, progress=progress)
    first, *ladder = replay_tables(played)
    shell.show((first, *([doubled_table(doubled)] if doubled else []), *ladder))
    write_figures(output / "replay.json", played.to_json())
    write_text(output / "report.html", replay_page(played, known))

    shell.say("\n4. And without placing all of them anew? From where they were, with a few moves each night.")
    write_trajectory(shell, files, known, played.forecasts["forecast"].model, output)

    shell.say(f"\nReport with plots: {(output / 'report.html').resolve()}")
    shell.say(f"Figures: backtest.json, replay.json and trajectory.json in {output.resolve()}")
    if serve_seconds == 0:
        return

    serve_last_evening(shell, files, known, directory, output, serve_seconds)


def write_trajectory(shell: Shell, files: HistoryFiles, known: History, model: PeakModel | None, output: Path) -> None:
    """The fourth part: the same days played forward from the recorded placement, by the model of the replay."""
    from forecast.fit import fit
    from forecast_scheduler.commands.run_replay import play_history, trajectory_table
    from rebalancer.trajectory.trajectories import TrajectoryOptions
    from rebalancer.trajectory.trajectory_page import trajectory_page

    defaults = shell.settings.replay
    # The replay's model knows nothing of these days. A fit for each of them would take minutes.
    options = TrajectoryOptions(fit_nights=14, release=0.01)
    with shell.progress() as progress:
        played = play_history(
            files,
            known,
            fit if model is None else lambda _: model,
            days=defaults.days,
            seed=defaults.seed,
            options=options,
            rebalance=shell.settings.rebalance,
            hot=shell.settings.hot_share,
            progress=progress,
        )
    shell.show(trajectory_table(played))
    write_figures(output / "trajectory.json", played.to_json())
    write_text(output / "trajectory.html", trajectory_page(played, known))
    shell.say(f"Time to effect, as a picture: {(output / 'trajectory.html').resolve()}")


def serve_last_evening(
    shell: Shell, files: HistoryFiles, known: History, directory: Path, output: Path, seconds: float | None
) -> None:
    """The fifth part: the scorer as it would have been on the last evening, with the report on its page."""
    from forecast_scheduler.commands.demo.evening_scorer import prepare_evening, serve_evening
    from forecast_scheduler.settings.document import with_options

    with shell.progress() as progress:
        evening = prepare_evening(shell.settings, files, known, directory, output, progress)
    settings = with_options(shell.settings, {"scorer": {"report": write_peaks(shell, known, evening.models, output)}})
    shell.say(
        f"\n5. The scorer on that cluster, as if it were {evening.moment:%A %H:%M} of the last day: "
        "where will it be hot tonight?"
    )

    def tell(url: str) -> None:
        shell.say(f"Open {url}/ in a browser. Ctrl-C ends it.")
        shell.say(f"Why a node is good for a pod: forecast-scheduler explain {evening.example_pod} {evening.options()}")

    serve_evening(settings, evening, seconds=seconds, on_started=tell)


def write_peaks(shell: Shell, known: History, models: Path, output: Path) -> Path:
    """The page of predicted and actual peaks, as of the midnight before the evening."""
    from forecast_scheduler.commands.read_peaks import read_peaks
    from forecast_scheduler.reports.peaks_report.peaks_page import peaks_page

    page = output / "peaks.html"
    before = known.before(known.n_days - 1)
    write_text(page, peaks_page(read_peaks(shell, before, str(models), made=datetime.now(UTC))))
    shell.say(f"Predicted against actual peaks: {page.resolve()}, and a link on the scorer's page")
    return page


def sample_directory() -> Path:
    """The bundled sample, in the working directory or next to this package in a clone."""
    for root in (Path(), Path(__file__).parents[3]):
        if (root / SAMPLE).is_dir():
            return root / SAMPLE
    raise InputError(
        "the sample is not here: run the demo in a clone of the repository, or on your own data with --history DIR"
    )


def largest_peaks(history: History, tested: Backtest) -> list[ServicePeak]:
    """CPU peaks of the last day that was backtested, of the services that used most that day."""
    from forecast.resources import CPU, RESOURCES

    actual, forecast = tested.peaks.actual[:, CPU, -1], tested.peaks.forecast[:, CPU, -1]
    known = [row for row in range(len(history.services)) if actual[row] == actual[row]]  # NaN is unequal to itself
    largest = sorted(known, key=lambda row: -actual[row])[:N_PEAKS_SHOWN]
    return [
        ServicePeak(
            service=str(history.services[row]),
            resource=RESOURCES[CPU].name,
            expected=float(forecast[row, 0]),
            bound=float(forecast[row, -1]),
            actual=float(actual[row]),
        )
        for row in largest
    ]
