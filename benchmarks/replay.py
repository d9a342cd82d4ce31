"""`python -m benchmarks.replay`: every placement rule beside its rivals, over several seeds and clusters.

    python -m benchmarks.replay                                   the bundled sample
    python -m benchmarks.replay --history DIR [DIR ...]           histories built before
    python -m benchmarks.replay --traces DIR                      builds the clusters of docs/understand/results.md
    first python -m benchmarks.replay --scenario nightly-jobs           the sample with nights full of CronJobs

All rules of a seed place the same pods in the same order, so differences are paired: the intervals come from drawing
seeds and days anew (2,000 times), always the same for both rules. A second table compares pods that are placed one by
one with a release that is placed together (benchmarks/replay_together.py), a third one pods placed by other curves of
the same model (benchmarks/replay_curves.py).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from base.arrays import Floats
from base.errors import InputError
from benchmarks.clusters.__main__ import main as build_cluster
from benchmarks.clusters.scenarios import Scenario
from benchmarks.replay_curves import by_other_curves
from benchmarks.replay_together import placed_together, print_summary, summary
from forecast.fit import fit
from forecast.history import History
from forecast.hot_share import HOT_SHARE
from forecast.model import PeakModel
from scorer.replay.preparation import forecast_with
from scorer.replay.replay import RULES, Replay, replay
from scorer.replay.replay_figures import RuleFigures
from scorer.replay.window import replay_window
from trainer.history.files import HistoryFiles

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
CLUSTERS = ("asd", "bitbrains")
NODES = ("equal", "mixed")
SCENARIOS = tuple(scenario.value for scenario in Scenario if scenario is not Scenario.NONE)
RIVALS = ("native", "live", "last_week", "oracle")
DRAWS = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay each history with each seed and print what came out."""
    options = _parser().parse_args(arguments)
    results: dict[str, Any] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="replay-benchmark-") as built:
            for directory in _histories(options, Path(built)):
                results[directory.name] = _measure(directory, options.seeds, options.days, ladder=options.ladder)
                _print_history(directory.name, results[directory.name])
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--history", type=Path, nargs="+", help="history directories to replay")
    parser.add_argument("--traces", type=Path, help="directory of the traces that the clusters are built from")
    parser.add_argument("--scenarios", action="store_true", help="with --traces: also every scenario")
    parser.add_argument("--scenario", choices=SCENARIOS, nargs="+", help="only these, played on the sample")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--ladder", action="store_true", help="measure the degradation ladder too")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser


def _histories(options: argparse.Namespace, built: Path) -> list[Path]:
    """The directories to replay; those made from the traces are built first."""
    if options.scenario is not None:
        return [_play_scenario(scenario, SAMPLE, built) for scenario in options.scenario]
    if options.traces is None:
        return list(options.history or [SAMPLE])
    directories = [SAMPLE, *(options.history or [])]
    for cluster in CLUSTERS:
        for nodes in NODES:
            out = built / f"{cluster}_{nodes}"
            _build([cluster, "--traces", str(options.traces), "--out", str(out), "--nodes", nodes])
            directories.append(out)
    if options.scenarios:
        directories += [
            _play_scenario(scenario, source, built)
            for source in (SAMPLE, built / "asd_equal")
            for scenario in SCENARIOS
        ]
    return directories


def _play_scenario(scenario: str, source: Path, built: Path) -> Path:
    """The directory of a history with a scenario played on it."""
    out = built / f"{source.name}_{scenario}"
    _build(["scenario", scenario, "--history", str(source), "--out", str(out)])
    return out


def _build(arguments: list[str]) -> None:
    if build_cluster(arguments) != 0:
        sys.exit(2)


def _measure(directory: Path, n_seeds: int, days: int, *, ladder: bool) -> dict[str, Any]:
    """Figures of all seeds of one history."""
    files = HistoryFiles.open(directory)
    history = files.history()
    window = replay_window(history, None, days)
    pods = files.pod_usage(window.days[0], window.days[-1])
    models: dict[date, PeakModel] = {}
    seconds: list[float] = []

    def fit_once(known: History) -> PeakModel:
        # A fit knows no seed: the seeds share it.
        if known.days[-1] not in models:
            begin = time.perf_counter()
            models[known.days[-1]] = fit(known)
            seconds.append(time.perf_counter() - begin)
        return models[known.days[-1]]

    played, placed, by_curve = [], [], []
    for seed in range(n_seeds):
        played.append(
            replay(history, pods, forecast_with(fit_once), days=days, seed=seed, ladder=ladder, hot=HOT_SHARE)
        )
        placed.append(placed_together(played[-1]))
        by_curve.append(by_other_curves(played[-1], seed))
        print(f"{directory.name}: seed {seed + 1} of {n_seeds}", file=sys.stderr)
    return {
        "seeds": [one.to_json() for one in played],
        "mean": {rule: _means(played, rule) for rule in RULES},
        "ladder": {rung: _short_means([one.ladder[rung] for one in played]) for rung in played[0].ladder},
        "by_curve": {curve: _short_means([one[curve] for one in by_curve]) for curve in by_curve[0]},
        "difference": {rival: _difference(played, rival) for rival in RIVALS},
        "gap_closed": _mean_gap(played),
        "node_bound_coverage": _coverage(played),
        "worst_hot_share_behind_last_week": max(
            one.figures["forecast"].hot_share - one.figures["last_week"].hot_share for one in played
        ),
        "together": summary(placed, _interval),
        "fit_seconds": seconds,
    }


def _means(played: Sequence[Replay], rule: str) -> dict[str, float]:
    figures = [one.figures[rule] for one in played]
    return {
        "hot_share": float(np.mean([f.hot_share for f in figures])),
        **{f"peak_cv_{r}": float(np.mean([f.peak_cv[r] for f in figures])) for r in figures[0].peak_cv},
        "p99_peak_cpu": float(np.mean([f.p99_peak["cpu"] for f in figures])),
        "max_peak_cpu": float(np.mean([f.max_peak["cpu"] for f in figures])),
        "unplaced": float(np.mean([f.unplaced for f in figures])),
    }


def _short_means(figures: Sequence[RuleFigures]) -> dict[str, float]:
    return {
        "hot_share": float(np.mean([f.hot_share for f in figures])),
        "peak_cv_cpu": float(np.mean([f.peak_cv["cpu"] for f in figures])),
    }


def _difference(played: Sequence[Replay], rival: str) -> dict[str, dict[str, float]]:
    """Forecast minus rival with paired bootstrap intervals: hot share over seeds and days, CPU spread over seeds."""
    hot = np.array(
        [np.subtract(one.figures["forecast"].daily_hot_share, one.figures[rival].daily_hot_share) for one in played]
    )  # (n_seeds, n_days)
    spread = np.array([one.figures["forecast"].peak_cv["cpu"] - one.figures[rival].peak_cv["cpu"] for one in played])
    return {"hot_share": _interval(hot), "peak_cv_cpu": _interval(spread[:, None])}


def _interval(paired: Floats) -> dict[str, float]:
    """Mean and 95 % interval of paired differences (n_seeds, n_days), rows and columns drawn with replacement."""
    rng = np.random.default_rng(0)
    n_seeds, n_days = paired.shape
    draws = [
        paired[rng.integers(n_seeds, size=n_seeds)][:, rng.integers(n_days, size=n_days)].mean() for _ in range(DRAWS)
    ]
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"mean": float(paired.mean()), "low": float(low), "high": float(high)}


def _mean_gap(played: Sequence[Replay]) -> dict[str, float | None]:
    """(native - forecast) / (native - oracle) of the means over the seeds; None where there is hardly a gap."""
    result: dict[str, float | None] = {}
    for name in ("hot_share", "peak_cv_cpu"):
        native, ours, oracle = (_means(played, rule)[name] for rule in ("native", "forecast", "oracle"))
        result[name] = None if native - oracle < 0.005 else (native - ours) / (native - oracle)
    return result


def _coverage(played: Sequence[Replay]) -> dict[str, float]:
    """Share of node-days, of all seeds, whose peak stayed within the forecast's 0.95 bound."""
    names = played[0].figures["forecast"].bound_coverage
    return {
        name: float(np.mean([one.figures["forecast"].bound_coverage[name].coverage for one in played]))
        for name in names
    }


def _print_history(name: str, result: dict[str, Any]) -> None:
    print(f"\n{name}")
    print(f"{'rule':<12}{'hot':>9}{'CPU CV':>9}{'p99':>8}{'max':>8}{'unplaced':>10}   forecast - rival, hot (95 %)")
    for rule in RULES:
        mean = result["mean"][rule]
        line = (
            f"{rule:<12}{mean['hot_share']:>9.3%}{mean['peak_cv_cpu']:>9.3f}{mean['p99_peak_cpu']:>8.0%}"
            f"{mean['max_peak_cpu']:>8.0%}{mean['unplaced']:>10.0f}"
        )
        if rule in result["difference"]:
            d = result["difference"][rule]["hot_share"]
            line += f"   {d['mean']:+.3%} ({d['low']:+.3%} to {d['high']:+.3%})"
        print(line)
    closed = {k: None if v is None else round(v, 3) for k, v in result["gap_closed"].items()}
    print(f"gap closed: {closed}; worst seed behind last_week: {result['worst_hot_share_behind_last_week']:+.3%}")
    print(f"coverage of the node bound: { {k: round(v, 3) for k, v in result['node_bound_coverage'].items()} }")
    print_summary(result["together"])
    for kind, found in (("rung", result["ladder"]), ("curve", result["by_curve"])):
        for one, mean in found.items():
            print(f"  {kind} {one:<30}{mean['hot_share']:>9.3%}{mean['peak_cv_cpu']:>9.3f}")


if __name__ == "__main__":
    sys.exit(main())
