"""A pretrained model in the cells of `benchmarks.decisions`: alone, in our blend, and its seconds.

    python -m benchmarks.decisions --traces DIR --keep KEPT                     once: what the others said
    python -m benchmarks.foundation_model FILE.onnx --keep KEPT --history DIR [DIR ..]

The directories of the histories have the names of the cells: bitbrains, smd, asd, azure, sample. `forecast` is our
model as it was kept, `with it` the same with the file among its predictors: on representative curves, or with
--every-series on all. Seconds are of CPU, which a busy machine changes less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from base.arrays import Floats, Ints
from base.errors import InputError
from benchmarks.decision_days import FORECASTERS, YESTERDAY, Days, origins
from benchmarks.decision_forecasters import OURS, QUANTILES, model_quantiles
from benchmarks.decisions import accuracy, print_losses
from benchmarks.harness import command_line
from forecast.backtest import scored_series
from forecast.fit import FitOptions, fit
from forecast.foundation_model import FoundationModelPredictor
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import RESOURCES
from trainer.history.files import read_history

ALONE, WITH = "the file alone", "with it"
_MIXED = (OURS, "LightGBM")
COLUMNS = (OURS, WITH, "LightGBM", "ridge", ALONE, *(f"half {name}" for name in _MIXED))

_MOST_DAYS = 42  # as many as `forecast.selection` shows a predictor


def alone(file: Path, history: History, kept: Ints, day: int) -> tuple[Floats, float]:
    """Quantiles of the day and the seconds of CPU for one series: (n_kept, n_resources, 48, n_quantiles)."""
    usage = history.usage_per_pod[kept][:, :, :day][:, :, -_MOST_DAYS:]
    days = history.describe_days()
    predictor = FoundationModelPredictor(path=file)
    predictor.fit(usage.reshape(-1, *usage.shape[2:]), days.take(slice(max(0, day - _MOST_DAYS), day)))
    started = time.process_time()
    quantiles = predictor.predict_quantiles(days.take(slice(day, day + 1)), QUANTILES)
    seconds = (time.process_time() - started) / max((predictor.level_ > 0).sum(), 1)
    if quantiles is None:
        raise InputError(f"{file} has the output mean: CRPS needs one that says quantiles")
    return quantiles.reshape(*usage.shape[:2], *quantiles.shape[2:]), seconds


def forecasts(file: Path, history: History, days: Days, *, blend: bool) -> tuple[dict[str, Days], float]:
    """What the columns said on the days that were kept, and the median seconds of CPU for a series."""
    used, _ = scored_series(history.usage_per_pod)
    rows = np.flatnonzero(used.any(axis=1))
    kept = rows[np.unique(np.linspace(0, len(rows) - 1, len(days.used)).round().astype(np.int64))]
    said: dict[str, list[Floats]] = {ALONE: [], WITH: []}
    seconds = []
    model: PeakModel | None = None
    for day in origins(history.n_days):
        quantiles, took = alone(file, history, kept, day)
        said[ALONE].append(quantiles)
        seconds.append(took)
        if blend:
            model = fit(history.before(day), FitOptions(foundation_model=file), previous=model)
            said[WITH].append(model_quantiles(model)[kept])
            weight = {name: round(of["foundation_model"], 2) for name, of in model.info["mean_weights"].items()}
            print(f"{history.days[day]}: mean weights of the file {weight}", flush=True)
    found = {name: replace(days, curves=np.stack(curves)[None]) for name, curves in said.items() if curves}
    found |= {name: replace(days, curves=days.of(name)[None]) for name in (*FORECASTERS, YESTERDAY)}
    for name in _MIXED:
        found[f"half {name}"] = replace(days, curves=(found[ALONE].curves + found[name].curves) / 2)
    return found, float(np.median(seconds))


def main(given: Sequence[str] | None = None) -> int:
    """Ask the file, fit with it, print."""
    parser = command_line(__doc__)
    parser.add_argument("file", type=Path, help="a model with the output quantiles")
    parser.add_argument("--keep", type=Path, required=True, help="directory that benchmarks.decisions kept")
    parser.add_argument("--history", type=Path, nargs="+", required=True, help="history directories")
    parser.add_argument("--every-series", action="store_true", help="the blend asks it for every series")
    parser.add_argument("--no-blend", action="store_true", help="the file alone, in seconds instead of minutes")
    arguments = parser.parse_args(given)
    FoundationModelPredictor.expensive = not arguments.every_series
    losses: dict[str, dict[str, tuple[Floats, Floats]]] = {}
    for directory in arguments.history:
        days = Days.load(arguments.keep / f"{directory.name}.npz")
        found, seconds = forecasts(arguments.file, read_history(directory), days, blend=not arguments.no_blend)
        print(f"{directory.name}: {1000 * seconds:.0f} s of CPU for a day of 1,000 series", flush=True)
        for index in np.flatnonzero(days.used.any(axis=0)):
            cell = f"{directory.name} {RESOURCES[index].name}"
            # The only forecaster of such days is the first.
            losses[cell] = {name: accuracy(one, OURS, int(index)) for name, one in found.items()}
    print_losses(losses, [name for name in COLUMNS if name in found])
    return 0


if __name__ == "__main__":
    sys.exit(main())
