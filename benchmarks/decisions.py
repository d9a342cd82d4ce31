"""Value in decisions: half hours over capacity at equal utilisation, as CloudCons (KDD 2026) measures forecasts.

    python -m benchmarks.decisions --traces DIR           bitbrains, smd, asd, azure and the bundled sample
    python -m benchmarks.decisions --history DIR [DIR ..] histories you have; without either, the sample
    ... --picture docs/understand/decisions.svg           draws all cells

At a few midnights each forecaster says what every pod will use in each half hour of the day, as quantiles. Pods are
packed by one quantile onto as few equal nodes as possible, and the day is played back. The quantile is swept, so that
each forecaster becomes a line of utilisation against violations. Lines are compared at 90 % of the utilisation that the
true future reaches. CRPS and MASE of the same curves are printed over those of a seasonal naive, as in BOOM's table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from base.arrays import Floats
from base.errors import InputError
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.plain import Trace, build_plain, plain_cluster
from benchmarks.clusters.traces import read_azure
from benchmarks.decision_accuracy import BOOM, absolute_error, crps, over_naive
from benchmarks.decision_days import FORECASTERS, YESTERDAY, Days, forecast_days
from benchmarks.decision_forecasters import NAIVE, OURS, QUANTILES
from benchmarks.decision_lines import (
    BY_NODE,
    NO_MARGIN,
    PACKED,
    TRUE_FUTURE,
    Z,
    node_bound_line,
    node_line,
    peak_line,
    quantile_line,
    sweep,
    variant,
)
from benchmarks.decision_picture import Panel, draw
from benchmarks.decision_tables import Merged, difference, mean_violations, merge, reached_by
from benchmarks.harness import command_line
from forecast.model import PEAK_QUANTILES
from forecast.resources import RESOURCES
from trainer.history.files import read_history

SHARES = (0.8, 0.9, 1.0)
"""Shares of the true future's utilisation at which violations are compared; tables of cells use the middle one."""

_SMALLEST = 1e-12


def accuracy(days: Days, forecaster: str, index: int) -> tuple[Floats, Floats]:
    """Losses of each series of a resource for MASE and for CRPS, summed over the midnights: (n_series,) each."""
    used = days.used[:, index]
    mase, score = np.zeros(int(used.sum())), np.zeros(int(used.sum()))
    for actual, curves, difference_ in zip(days.actual, days.of(forecaster), days.difference, strict=True):
        median = curves[used, index, :, QUANTILES.index(0.5)]
        scale = np.maximum(difference_[used, index], _SMALLEST)
        mase += absolute_error(actual[used, index], median) / scale
        score += crps(actual[used, index], curves[used, index], QUANTILES)
    return mase, score


def print_accuracy(all_days: dict[str, Days]) -> None:
    """Print the accuracy of all forecasters, then BOOM's lines."""
    names = (*FORECASTERS, YESTERDAY)
    print_losses(
        {
            f"{trace} {resource.name}": {name: accuracy(days, name, index) for name in names}
            for trace, days in all_days.items()
            for index, resource in enumerate(RESOURCES)
            if days.used[:, index].any()
        },
        FORECASTERS,
    )
    print("BOOM's table, of OTHER series and horizons (Datadog's own, native sampling), the same definition:")
    for model, mase, score in BOOM:
        print(f"  {model:20} {mase:.3f} / {score:.3f}")


def print_losses(cells: dict[str, dict[str, tuple[Floats, Floats]]], names: Sequence[str]) -> None:
    """Print MASE and CRPS over those of a copy of the day before, by cell and over all series.

    cells : what `accuracy` says of each name in each cell, and of YESTERDAY
    names : the columns
    """
    print(f"\nMASE / CRPS of the curves over a copy of the day before\n{'':20}" + "".join(f"{n:>17}" for n in names))
    for cell, losses in cells.items():
        print(f"{cell:20}" + _ratios(losses, names))
    joined = {
        name: (
            np.concatenate([losses[name][0] for losses in cells.values()]),
            np.concatenate([losses[name][1] for losses in cells.values()]),
        )
        for name in (*names, YESTERDAY)
    }
    print(f"{f'all {len(joined[YESTERDAY][0])} series':20}" + _ratios(joined, names))


def _ratios(losses: dict[str, tuple[Floats, Floats]], names: Sequence[str]) -> str:
    mase, score = losses[YESTERDAY]
    cells = [f"{over_naive(losses[n][0], mase):.3f} / {over_naive(losses[n][1], score):.3f}" for n in names]
    return "".join(f"{cell:>17}" for cell in cells)


def print_cells(cells: Sequence[Merged]) -> None:
    """Print violations at equal utilisation for each cell and over all."""
    lines = (OURS, BY_NODE, *FORECASTERS[1:], TRUE_FUTURE)
    print(f"\nnode half hours over capacity at {SHARES[1]:.0%} of the true future's utilisation (95 % over seeds)")
    print(f"{'':20}{'pods':>5}{'util':>6}" + "".join(f"{line:>22}" for line in lines))
    for cell in cells:
        row = [f"{_percent(cell.at(line, SHARES[1]))} {_range(cell.interval(line, SHARES[1]))}" for line in lines]
        print(f"{cell.name:20}{cell.n_pods:5.0f}{cell.best:6.0%}" + "".join(f"{one:>22}" for one in row))
    for share in SHARES:
        row = [_mean(cells, line, share) for line in lines]
        print(f"{f'mean at {share:.0%}':31}" + "".join(f"{one:>22}" for one in row))
    row = [_mean(cells, line, SHARES[1], figure=2) for line in lines]
    print(f"{f'severity at {SHARES[1]:.0%}':31}" + "".join(f"{one:>22}" for one in row))
    print(f"\npoints more than the {NAIVE}, and than the {OURS} (95 % over cells), at {SHARES[1]:.0%}")
    for line in lines:
        gaps = [f"{_points(cells, line, other, SHARES[1]):>26}" for other in (NAIVE, OURS)]
        print(f"  {line:20}" + "".join(gaps))
    print(f"\nother ways to pack, mean over cells at {SHARES[0]:.0%}")
    for forecaster in FORECASTERS:
        ways = (forecaster, variant(forecaster, best_fit=True), variant(forecaster, at_peak=True))
        print("  " + ", ".join(f"{way} {_mean(cells, way, SHARES[0])}" for way in ways))


def print_quantiles(cells: Sequence[Merged]) -> None:
    """Print which packed quantile leads to the fewest violations at equal utilisation, by our model."""
    shipped = node_bound_line(PEAK_QUANTILES[-1])
    lines = [quantile_line(q) for q in PACKED] + [node_line(z) for z in Z]
    lines += [line(q) for q in PEAK_QUANTILES for line in (peak_line, node_bound_line)]
    best = [min(lines, key=lambda line: np.nan_to_num(cell.at(line, SHARES[0]), nan=1.0)) for cell in cells]
    print("\nthe packed quantile of our model: violations at equal utilisation by a margin on top, mean over cells")
    traces = sorted({cell.trace for cell in cells})
    columns = "".join(f"{f'at {share:.0%}':>18}" for share in SHARES)
    print(f"{'':16}{columns}  best in  no margin: util, violations")
    for line in lines:
        rates = "".join(f"{_mean(cells, line, share):>18}" for share in SHARES)
        plain = np.mean([cell.line(line)[NO_MARGIN] for cell in cells], axis=0)
        print(f"{line:16}{rates}{best.count(line):>9}{plain[0]:>17.0%}{_percent(plain[1]):>12}")
    print(
        f"\nthe same at {SHARES[0]:.0%} by trace; points more than {shipped} (95 % over cells); cells with less, more"
    )
    print(f"{'':16}" + "".join(f"{trace:>18}" for trace in traces))
    for line in lines:
        by_trace = [_mean([cell for cell in cells if cell.trace == trace], line, SHARES[0]) for trace in traces]
        gaps = [cell.at(line, SHARES[0]) - cell.at(shipped, SHARES[0]) for cell in cells]
        less, more = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
        points = _points(cells, line, shipped, SHARES[0])
        print(f"{line:16}" + "".join(f"{rate:>18}" for rate in by_trace) + f"   {points}, {less}, {more}")


def picture(cells: Sequence[Merged]) -> str:
    """Return one SVG of all cells."""
    names = (*FORECASTERS, TRUE_FUTURE)
    return draw([Panel(cell.name, {n: cell.line(n)[:, :2] for n in names}) for cell in cells], SHARES[1])


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{100 * share:.2f} %"


def _mean(cells: Sequence[Merged], line: str, share: float, *, figure: int = 1) -> str:
    """Mean violation rate (figure 1) or severity (2) over the cells that a line reaches."""
    reached = reached_by(cells, share, line)
    return _of(cells, reached, _percent(mean_violations(reached, line, share, figure=figure)) if reached else "-")


def _points(cells: Sequence[Merged], line: str, other: str, share: float) -> str:
    """Points of violation rate that a line has more than another, over the cells that both reach."""
    reached = reached_by(cells, share, line, other)
    if not reached:
        return "-"
    gap, low, high = (100 * value for value in difference(reached, line, other, share))
    return _of(cells, reached, f"{gap:+.2f} ({low:+.2f} to {high:+.2f})")


def _of(cells: Sequence[Merged], reached: Sequence[Merged], figure: str) -> str:
    """The figure with the number of cells that it is of, unless it is of all or of none."""
    return figure if len(reached) in (0, len(cells)) else f"{figure} ({len(reached)} cells)"


def _range(interval: tuple[float, float]) -> str:
    return f"({100 * interval[0]:.2f}..{100 * interval[1]:.2f})"


def histories(arguments: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Names and directories of the histories asked for; those of traces are built when their turn comes."""
    yield from ((directory.name, directory) for directory in arguments.history or [])
    if arguments.traces:
        for trace in Trace:
            build_plain(trace, arguments.traces, scratch / trace.value)
            yield trace.value, scratch / trace.value
        write_history(plain_cluster(read_azure(arguments.traces), "azure", "UTC"), scratch / "azure")
        yield "azure", scratch / "azure"
    if not arguments.history:
        yield "sample", Path("data/sample")


def _days(arguments: argparse.Namespace) -> dict[str, Days]:
    """Forecasts of all histories, read again where an earlier run kept them."""
    kept: Path | None = arguments.keep
    if kept is not None and (stored := sorted(kept.glob("*.npz"))):
        print(f"forecasts of an earlier run, from {kept}")
        return {path.stem: Days.load(path) for path in stored}
    found: dict[str, Days] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, directory in histories(arguments, Path(scratch)):
            found[name] = forecast_days(name, read_history(directory))
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        for name, days in found.items():
            days.save(kept / f"{name}.npz")
    return found


def main(given: Sequence[str] | None = None) -> int:
    """Forecast, pack, play back, print and draw."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the traces; built into histories first")
    parser.add_argument("--history", type=Path, nargs="+", help="history directories")
    parser.add_argument("--seeds", type=int, default=12, help="draws of pods and node sizes")
    parser.add_argument("--keep", type=Path, help="directory that keeps the forecasts; a later run reads them there")
    parser.add_argument("--picture", type=Path, help="write the SVG here")
    arguments = parser.parse_args(given)
    try:
        all_days = _days(arguments)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print_accuracy(all_days)
    started = time.perf_counter()
    cells: list[Merged] = []
    for trace, days in all_days.items():
        for resource in RESOURCES:
            played = [sweep(trace, days, resource.name, seed) for seed in range(arguments.seeds)]
            if found := [cell for cell in played if cell is not None]:
                cells.append(merge(found))
    print(f"{len(cells)} cells, {arguments.seeds} seeds, packed in {time.perf_counter() - started:.0f} s")
    print_cells(cells)
    print_quantiles(cells)
    if arguments.picture:
        arguments.picture.write_text(picture(cells), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
