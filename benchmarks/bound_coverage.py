"""How many daily peaks stay under their 0.95 bound: of nodes, and night by night while a cluster drifts.

    python -m benchmarks.bound_coverage                 the bundled sample
    python -m benchmarks.bound_coverage --traces DIR    also clusters of Bitbrains and ASD, and ASD with a drift

Bounds of single services are printed by `benchmarks.backtest`, from the same functions. Nights go by as in the
backtest: each model is fitted after the one of the night before. Days of a cluster err together, and machines do so
over days: the 95 % intervals come from drawing both anew (two-way bootstrap, Owen 2007, Annals of Applied
Statistics 1).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from base.arrays import Floats, Ints
from base.errors import InputError
from benchmarks.clusters.__main__ import main as build_cluster
from benchmarks.harness import command_line
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel, no_scores
from forecast.online_calibration import node_hits, service_hits
from forecast.resources import RESOURCES
from trainer.history.files import read_history

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
_DRAWS = 1_000
_CLASSES = 3
_SMALLEST_CLASS = 100
_GROWTH_PER_DAY, _DAYS_OF_DRIFT, _NIGHTS_OF_DRIFT = 1.08, 9, 28
_NIGHTS_TO_COVER = 5


def coverage_interval(hits: Floats, seed: int = 0) -> tuple[float, float, float]:
    """Share of hits and its 95 % interval.

    hits : (n_days, n_rows) 1, 0, NaN = unknown
    """
    known = np.isfinite(hits)
    values = np.where(known, hits, 0.0)
    rng = np.random.default_rng(seed)
    n_days, n_rows = hits.shape
    of_days = rng.multinomial(n_days, np.full(n_days, 1 / n_days), size=_DRAWS).astype(np.float64)
    of_rows = rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows), size=_DRAWS).astype(np.float64)
    counted = np.einsum("bd,dr,br->b", of_days, known.astype(np.float64), of_rows, optimize=True)
    held = np.einsum("bd,dr,br->b", of_days, values, of_rows, optimize=True)
    drawn = counted > 0
    low, high = np.quantile(held[drawn] / counted[drawn], [0.025, 0.975])
    return float(values.sum() / max(known.sum(), 1)), float(low), float(high)


def by_class(hits: Floats, trait: Floats) -> list[tuple[float, int]]:
    """Share of hits, and their number, in each third of the rows by a trait; thirds under 100 hits are left out.

    hits, trait : (n_days, n_rows); trait NaN = in no class
    """
    edges = np.nanquantile(trait, np.arange(1, _CLASSES) / _CLASSES)
    of = np.where(np.isfinite(trait), np.digitize(trait, edges), -1)
    counted = [hits[(of == c) & np.isfinite(hits)] for c in range(_CLASSES)]
    return [(float(values.mean()), len(values)) for values in counted if len(values) >= _SMALLEST_CLASS]


def traits(history: History, days: Sequence[int]) -> dict[str, Floats]:
    """What services differ by on each day, from the days before it: name -> (n_days, n_services, n_resources).

    hour       : usual half hour of the peak over 14 days
    size       : mean usage of 7 days
    volatility : log ratio of the highest to the median daily peak of 28 days
    """
    usage = history.usage_per_pod
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # days and services without a sample
        measured = np.isfinite(usage)
        peak_slot = np.where(measured, usage, -np.inf).argmax(axis=3).astype(np.float64)
        peak = np.where(measured, usage, -np.inf).max(axis=3)
        peak[~measured.any(axis=3)] = np.nan
        mean = np.where(measured, usage, 0).sum(axis=3) / np.maximum(measured.sum(axis=3), 1)
        return {
            "hour": np.stack([np.median(peak_slot[:, :, max(0, d - 14) : d], axis=2) for d in days]),
            "size": np.stack([mean[:, :, max(0, d - 7) : d].mean(axis=2) for d in days]),
            "volatility": np.stack(
                [
                    np.log(np.nanmax(peak[:, :, max(0, d - 28) : d], axis=2))
                    - np.log(np.nanmedian(peak[:, :, max(0, d - 28) : d], axis=2))
                    for d in days
                ]
            ),
        }


def night_by_night(history: History, n_nights: int, *, online: bool) -> tuple[Floats, Floats]:
    """Hits of the last nights' bounds: of services (n_nights, n_services, n_resources), of nodes likewise.

    online : move the bounds by how those issued before held, as `train` does
    """
    services, nodes = [], []
    model: PeakModel | None = None
    for day in range(history.n_days - n_nights, history.n_days):
        if model is not None and not online:
            # A model of tonight's date: no day has come since, so nothing is held against its bounds.
            unscored = no_scores(len(model.services), model.node_z, len(model.nodes))
            model = replace(model, first_day=history.days[day], **unscored)
        model = fit(history.before(day), previous=model)
        services.append(service_hits(history, model, day))
        nodes.append(node_hits(history, model, day))
    return np.stack(services), np.stack(nodes)


def with_drift(history: History, first: int, growth: float) -> History:
    """Every service uses `growth` times as much each day for nine days, and varies more from day to day in them.

    What it used the day after, it goes on to use: the drift is over.
    """
    rng = np.random.default_rng(0)
    days: Ints = np.arange(history.n_days)
    level = growth ** np.clip(days - first + 1, 0, _DAYS_OF_DRIFT)
    noise = rng.lognormal(0.0, 0.25, (len(history.services), 1, history.n_days, 1))
    drifting = (days >= first) & (days < first + _DAYS_OF_DRIFT)
    factor = level[:, None] * np.where(drifting[:, None], noise, 1.0)
    return replace(history, usage_per_pod=(history.usage_per_pod * factor).astype(np.float32))


def _print_nodes(name: str, history: History, nights: int) -> None:
    _, nodes = night_by_night(history, nights, online=True)
    for r, resource in enumerate(RESOURCES):
        if np.isfinite(nodes[:, :, r]).any():
            share, low, high = coverage_interval(nodes[:, :, r])
            interval = f"{share:6.1%} ({low:.1%} to {high:.1%})"
            print(f"{name:16} nodes {resource.name:8} {interval}, {nights} nights", flush=True)


def _print_drift(name: str, history: History) -> None:
    """Both ways: a load that doubles and one that halves, with bounds that move and that do not."""
    first = history.n_days - _NIGHTS_OF_DRIFT
    held, over = _NIGHTS_TO_COVER, _DAYS_OF_DRIFT + _NIGHTS_TO_COVER
    for growth in (_GROWTH_PER_DAY, 1 / _GROWTH_PER_DAY):
        drifting = with_drift(history, first, growth)
        for online in (False, True):
            services, _ = night_by_night(drifting, _NIGHTS_OF_DRIFT, online=online)
            cpu = services[:, :, 0]
            shares = " ".join(f"{share:.0%}" for share in np.nanmean(cpu, axis=1))
            moved = "moved" if online else "not moved"
            print(f"{name} by {growth:.2f} a day, CPU bounds of services {moved} by what came: {shares}")
            print(
                f"    from its night {held + 1} on: {np.nanmean(cpu[held:_DAYS_OF_DRIFT]):.1%}; "
                f"from night {_NIGHTS_TO_COVER + 1} after it: {np.nanmean(cpu[over:]):.1%}",
                flush=True,
            )


def main(given: Sequence[str] | None = None) -> int:
    """Print the coverage of every history asked for."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the traces; clusters are built from them first")
    parser.add_argument("--nights", type=int, default=14, help="nights of each history (default: %(default)s)")
    arguments = parser.parse_args(given)
    try:
        _measure(arguments)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _measure(arguments: argparse.Namespace) -> None:
    sample = read_history(SAMPLE)
    _print_nodes("sample", sample, min(arguments.nights, sample.n_days - 14))
    if arguments.traces is None:
        return
    with tempfile.TemporaryDirectory(prefix="bound-coverage-") as built:
        for cluster in ("asd", "bitbrains"):
            out = Path(built) / cluster
            if build_cluster([cluster, "--traces", str(arguments.traces), "--out", str(out)]) != 0:
                raise InputError(f"the cluster {cluster} could not be built from {arguments.traces}, see above")
            history = read_history(out)
            _print_nodes(cluster, history, arguments.nights)
            if cluster == "asd":
                _print_drift("ASD, drifting", history)


if __name__ == "__main__":
    sys.exit(main())
