"""Daily peaks of real traces: our published model beside the fixed baselines, and beside public libraries.

    python -m benchmarks.backtest --traces DIR            bitbrains, smd and asd as they are, every entity a service
    python -m benchmarks.backtest --history DIR [DIR ...] histories you have; without either, the bundled sample

Per resource and loss: our loss, the best baseline's (chosen after the fact, per cell) and their ratio with a 95 %
interval from drawing series anew 2,000 times, the same for both. statsforecast and LightGBM see every seventh
origin; their ratio is to ours on the same origins. Entities are split in two halves: what was tuned looked at the
losses of the first only. Coverage is printed with intervals, and by thirds of hour, size and volatility.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from base.arrays import Bools, Floats
from base.errors import InputError
from benchmarks.bound_coverage import by_class, coverage_interval, traits
from benchmarks.clusters.plain import Trace, build_plain
from benchmarks.harness import command_line
from benchmarks.rivals import RIVALS
from forecast.backtest import OURS, Backtest, backtest, origin_days, peak_scores
from forecast.fit import fit
from forecast.history import History
from forecast.model import PEAK_QUANTILES
from forecast.online_calibration import daily_peaks
from forecast.quantiles import pinball_loss
from forecast.resources import resource_index
from trainer.history.files import read_history

_DRAWS = 2_000
_RIVAL_STEP = 7
_SPLIT_SEED = 7
HALVES = ("tuned on", "held out")


def series_losses(report: Backtest, resource: str, name: str, quantile: int) -> tuple[Floats, Floats]:
    """Summed scaled losses and summed scaled peaks of each scored series: (n_series,), (n_series,)."""
    index = resource_index(resource)
    rows = report.peaks.used[:, index]
    scale = report.peaks.scale[rows, index, None]
    actual = report.peaks.actual[rows, index] / scale
    forecast = report.peaks.forecasts[name][rows, index, :, quantile] / scale
    known = np.isfinite(actual) & np.isfinite(forecast)
    losses = np.where(known, pinball_loss(np.nan_to_num(actual), np.nan_to_num(forecast), PEAK_QUANTILES[quantile]), 0)
    return losses.sum(axis=1), np.where(known, actual, 0).sum(axis=1)


def interval(ours: Floats, theirs: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Paired bootstrap over series of sum(ours) / sum(theirs)."""
    draws = rng.integers(0, len(ours), (_DRAWS, len(ours)))
    low, high = np.quantile(ours[draws].sum(axis=1) / theirs[draws].sum(axis=1), [0.025, 0.975])
    return float(low), float(high)


def cells(name: str, report: Backtest) -> list[dict[str, object]]:
    """One row per resource and quantile."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for resource, scores in report.scores.items():
        for quantile, field in enumerate(("loss50", "loss95")):
            rivals = {other: getattr(score, field) for other, score in scores.items() if other != OURS}
            best = min(rivals, key=lambda other: rivals[other])
            ours, _ = series_losses(report, resource, OURS, quantile)
            theirs, _ = series_losses(report, resource, best, quantile)
            rows.append(
                {
                    "trace": name,
                    "resource": resource,
                    "loss": field,
                    "ours": getattr(scores[OURS], field),
                    "best": rivals[best],
                    "baseline": best,
                    "ratio": getattr(scores[OURS], field) / rivals[best],
                    "interval": interval(ours, theirs, rng),
                    "coverage95": scores[OURS].coverage95,
                    "baseline_coverage95": scores[best].coverage95,
                    "n": scores[OURS].n,
                }
            )
    return rows


def rival_ratios(history: History, report: Backtest) -> dict[str, dict[str, list[float]]]:
    """Our loss over a public library's, per resource: {library: {resource: [at 0.5, at 0.95]}}."""
    peaks = daily_peaks(history.usage_per_pod)
    days = origin_days(history.n_days)
    chosen = range(0, len(days), _RIVAL_STEP)
    result: dict[str, dict[str, list[float]]] = {}
    for library, forecaster in RIVALS.items():
        for resource in report.scores:
            index = resource_index(resource)
            rows = report.peaks.used[:, index]
            scale = report.peaks.scale[rows, index, None]
            losses = np.zeros((2, 2))
            for position in chosen:
                theirs = forecaster(peaks[rows, index, : days[position]]) / scale
                ours = report.peaks.forecast[rows, index, position] / scale
                actual = report.peaks.actual[rows, index, position] / scale[:, 0]
                known = np.isfinite(actual)
                for q, quantile in enumerate(PEAK_QUANTILES):
                    for who, forecast in enumerate((ours, theirs)):
                        losses[who, q] += pinball_loss(actual[known], forecast[known, q], quantile).sum()
            result.setdefault(library, {})[resource] = (losses[0] / losses[1]).round(3).tolist()
    return result


def held_out(history: History) -> Bools:
    """(n_services,) the half of the entities that nothing was tuned on. Metrics of one server (ASD) stay together."""
    entity = np.array([re.sub(r"-m\d+$", "", service.name) for service in history.services])
    names, of_service = np.unique(entity, return_inverse=True)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(names))
    return np.asarray(np.isin(of_service, order[len(names) // 2 :]))


def half_ratios(history: History, report: Backtest) -> dict[str, list[float]]:
    """Our loss over the best baseline's in every cell, for each half of the entities with the best of that half."""
    second = held_out(history)
    result: dict[str, list[float]] = {}
    for name, chosen in zip(HALVES, (~second, second), strict=True):
        used = report.peaks.used & chosen[:, None]
        for scores in peak_scores(report.peaks.forecasts, report.peaks.actual, used, report.peaks.scale).values():
            for field in ("loss50", "loss95"):
                best = min(getattr(score, field) for other, score in scores.items() if other != OURS)
                result.setdefault(name, []).append(getattr(scores[OURS], field) / best)
    return result


def print_coverage(history: History, report: Backtest) -> None:
    """Coverage of the 0.95 bounds of services, with intervals, and of classes of them."""
    days = list(origin_days(history.n_days))
    by_name = traits(history, days)
    for resource in report.scores:
        index = resource_index(resource)
        rows = report.peaks.used[:, index]
        actual = report.peaks.actual[rows, index].T  # (n_days, n_rows)
        bound = report.peaks.forecast[rows, index, :, -1].T
        hits = np.where(np.isfinite(actual), actual <= bound, np.nan)
        share, low, high = coverage_interval(hits)
        classes = "; ".join(
            f"by {name} " + ", ".join(f"{part:.1%}" for part, _ in by_class(hits, values[:, rows, index]))
            for name, values in by_name.items()
        )
        print(f"{resource:9} under the 0.95 bound: {share:.1%} ({low:.1%} to {high:.1%}); {classes}")


def run(name: str, directory: Path, *, rivals: bool, halves: dict[str, list[float]]) -> list[dict[str, object]]:
    """Backtest one history and print its cells; adds those of the halves of its entities to `halves`."""
    history = read_history(directory)
    started = time.perf_counter()
    report = backtest(history, lambda known, previous: fit(known, previous=previous))
    seconds = time.perf_counter() - started
    print(f"\n{name}: {len(history.services)} services, {len(report.origins)} origins, {seconds:.0f} s")
    print(
        f"{'resource':9} {'loss':7} {'ours':>7} {'best':>7}  {'baseline':24} "
        f"{'ratio':>6} {'95 % interval':>15} {'coverage':>9} {'n':>6}"
    )
    rows = cells(name, report)
    intervals: dict[tuple[object, object], tuple[float, float]] = {
        (row["resource"], row["loss"]): row["interval"]  # type: ignore[misc]
        for row in rows
    }
    for row in rows:
        low, high = intervals[row["resource"], row["loss"]]
        print(
            f"{row['resource']:9} {row['loss']:7} {row['ours']:7.4f} {row['best']:7.4f}  {row['baseline']:24} "
            f"{row['ratio']:6.3f} {f'{low:.3f} .. {high:.3f}':>15} {row['coverage95']:9.3f} {row['n']:6}"
        )
    print(f"left out by the definition: {report.left_out}; node bound coverage: {report.node_coverage}")
    print_coverage(history, report)
    for half, of_half in half_ratios(history, report).items():
        print(f"{half}: mean ratio {np.mean(of_half):.3f}, worst {max(of_half):.3f}", flush=True)
        halves.setdefault(half, []).extend(of_half)
    if rivals:
        for library, ratios in rival_ratios(history, report).items():
            print(f"ours / {library} (0.5, 0.95): {ratios}")
    return rows


def main(given: Sequence[str] | None = None) -> int:
    """Run all histories asked for, print the mean and the worst ratio."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the traces; built into histories first")
    parser.add_argument("--history", type=Path, nargs="+", help="history directories")
    parser.add_argument("--no-rivals", action="store_true", help="leave out statsforecast and LightGBM, which are slow")
    parser.add_argument("--json", type=Path, help="write all cells here")
    arguments = parser.parse_args(given)
    halves: dict[str, list[float]] = {}
    try:
        rows = _rows(arguments, halves)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    ratios = [float(row["ratio"]) for row in rows]  # type: ignore[arg-type]
    print(f"\n{len(rows)} cells: mean ratio {np.mean(ratios):.3f}, worst {max(ratios):.3f}")
    for half, of_half in halves.items():
        print(f"entities {half}: {len(of_half)} cells: mean ratio {np.mean(of_half):.3f}, worst {max(of_half):.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


def _rows(arguments: argparse.Namespace, halves: dict[str, list[float]]) -> list[dict[str, object]]:
    """Of all histories; those made from the traces are built first."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        histories = [(directory.name, directory) for directory in arguments.history or []]
        for trace in Trace if arguments.traces else ():
            out = Path(scratch) / trace.value
            build_plain(trace, arguments.traces, out)
            histories.append((trace.value, out))
        for name, directory in histories or [("sample", Path("data/sample"))]:
            rows += run(name, directory, rivals=not arguments.no_rivals, halves=halves)
    return rows


if __name__ == "__main__":
    sys.exit(main())
