"""Daily peaks: other forecasters, and equal ensembles of ours with each, as ratios of their loss to ours.

    python -m benchmarks.peak_challengers --traces DIR      bitbrains, smd and asd as they are, every entity a service
    python -m benchmarks.peak_challengers --history DIR ... histories that are built already

Origins, series and losses are those of the backtest (forecast/backtest.py); of 28 origins every seventh is looked at.
All see the days before the same midnights. Entities are split in two halves by a fixed seed. Each figure is the mean
over resources of a loss divided by ours: below 1 the challenger is better. A challenger is worth taking in if it is
better by more than 1 % in both halves of every trace.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from base.arrays import Floats
from base.errors import InputError
from benchmarks.challengers.half_hour_trees import half_hour_trees
from benchmarks.challengers.known_series import QUANTILES, KnownSeries
from benchmarks.challengers.pinball_network import pinball_network
from benchmarks.challengers.ridge_on_lags import ridge_on_lags
from benchmarks.clusters.plain import Trace, build_plain
from benchmarks.harness import command_line
from benchmarks.rivals import light_gbm
from forecast.backtest import OURS, origin_days, peak_scores, scored_series
from forecast.fit_inputs import Series
from forecast.history import History
from forecast.online_calibration import daily_peaks
from forecast.peaks import PeakForecaster
from trainer.history.files import read_history

_STEP = 7
_WORTH_IT = 0.99


def ours(known: KnownSeries) -> Floats:
    """What `fit` would publish for the next day, (n_series, 2), without offsets of earlier nights."""
    forecaster = PeakForecaster(quantiles=QUANTILES).fit(known.usage, known.resource, known.days)
    return forecaster.predict(known.target).peaks[:, 0]


def pooled_daily_trees(known: KnownSeries) -> Floats:
    """LightGBM of the backtest's rivals, a model per resource: (n_series, 2)."""
    peaks = known.peaks
    forecasts = np.zeros((len(peaks), len(QUANTILES)))
    for rows in known.by_resource():
        forecasts[rows] = light_gbm(peaks[rows])
    return forecasts


CHALLENGERS: dict[str, Callable[[KnownSeries], Floats]] = {
    "lightgbm on half hours": half_hour_trees,
    "lightgbm on daily peaks": pooled_daily_trees,
    "ridge on lags": ridge_on_lags,
    "small network": pinball_network,
}


def forecasts_at(history: History, days: Sequence[int]) -> dict[str, Floats]:
    """All forecasters and ensembles at these midnights: name -> (n_services, n_resources, n_origins, 2).

    We learn from all series; challengers see those that are scored, as idle ones would spoil their common scale.
    """
    nightly: dict[str, list[Floats]] = {}
    calendar = history.describe_days()
    used, _ = scored_series(history.usage_per_pod)
    for day in days:
        before = history.before(day)
        series = Series.of(before.usage_per_pod)
        known = KnownSeries(
            usage=series.flatten(before.usage_per_pod),
            resource=series.resource,
            days=calendar.take(slice(day)),
            target=calendar.take(slice(day, day + 1)),
        )
        scored = used[series.service, series.resource]
        of_scored = replace(known, usage=known.usage[scored], resource=known.resource[scored])
        found: dict[str, Floats] = {OURS: ours(known)}
        for name, challenger in CHALLENGERS.items():
            started = time.perf_counter()
            found[name] = np.full_like(found[OURS], np.nan)
            found[name][scored] = challenger(of_scored)
            print(f"  day {day}: {name} {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        found |= {f"ours and {name}": (found[OURS] + found[name]) / 2 for name in CHALLENGERS}
        found["ours and all"] = np.mean([found[name] for name in (OURS, *CHALLENGERS)], axis=0)
        for name, values in found.items():
            nightly.setdefault(name, []).append(series.unflatten(values))
    return {name: np.stack(values, axis=2) for name, values in nightly.items()}


def scores_of(
    history: History, forecasts: dict[str, Floats], days: Sequence[int], half: int | None = None
) -> dict[str, Floats]:
    """Means over resources: name -> loss at 0.5 and at 0.95 divided by ours, share of peaks under the 0.95 bound.

    half : 0 or 1 of the entities, None = all
    """
    used, scale = scored_series(history.usage_per_pod)
    if half is not None:
        halves = np.random.default_rng(0).permutation(len(used)) % 2
        used = used & (halves == half)[:, None]
    targets = daily_peaks(history.usage_per_pod)[:, :, list(days)]
    scores = peak_scores(forecasts, targets, used, scale).values()
    return {
        name: np.mean(
            [
                (of[name].loss50 / of[OURS].loss50, of[name].loss95 / of[OURS].loss95, of[name].coverage95)
                for of in scores
            ],
            axis=0,
        )
        for name in forecasts
    }


def run(name: str, directory: Path) -> dict[str, Floats]:
    """Print the figures of one history; returns challenger -> (2 halves, 2 quantiles) of losses divided by ours."""
    history = read_history(directory)
    origins = origin_days(history.n_days)
    days = [*origins[::_STEP]] if len(origins) > _STEP else [*origins]
    forecasts = forecasts_at(history, days)
    everyone, first, second = (scores_of(history, forecasts, days, half) for half in (None, 0, 1))
    print(f"\n{name}: {len(history.services)} entities, {len(days)} origins; loss / ours at 0.5 and 0.95")
    print(f"{'':34} {'all':>15} {'first half':>15} {'second half':>15} {'under 0.95 bound':>17}")
    for forecaster, of_all in everyone.items():
        shown = [f"{of[forecaster][0]:.3f} / {of[forecaster][1]:.3f}" for of in (everyone, first, second)]
        print(f"{forecaster:34} " + " ".join(f"{text:>15}" for text in shown) + f" {of_all[2]:17.3f}", flush=True)
    others = [forecaster for forecaster in everyone if forecaster != OURS]
    return {other: np.stack([first[other][:2], second[other][:2]]) for other in others}


def main(given: Sequence[str] | None = None) -> int:
    """Run all histories asked for, and print which challengers are worth taking in."""
    parser = command_line(__doc__)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--traces", type=Path, help="directory of the traces; built into histories first")
    asked.add_argument("--history", type=Path, nargs="+", help="history directories")
    arguments = parser.parse_args(given)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            places = arguments.history or [Path(scratch) / trace.value for trace in Trace]
            if arguments.traces:
                for trace, out in zip(Trace, places, strict=True):
                    build_plain(trace, arguments.traces, out)
            found = [run(place.name, place) for place in places]
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print("\nmean over traces of all halves; worst half")
    for challenger in found[0]:
        of_all = np.concatenate([trace[challenger] for trace in found])  # (n_traces * 2, 2)
        mean, worst = of_all.mean(axis=0), of_all.max(axis=0)
        verdicts = ["kept" if high < _WORTH_IT else "not kept" for high in worst]
        print(
            f"{challenger:34} 0.5: {mean[0]:.3f}, {worst[0]:.3f} {verdicts[0]:8}  "
            f"0.95: {mean[1]:.3f}, {worst[1]:.3f} {verdicts[1]}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
