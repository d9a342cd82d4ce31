"""How many nodes each placement rule needs, and how long the answer takes.

    python -m benchmarks.capacity [--traces DIR] [--seeds N] [--services N] [--no-speed] [--json FILE]

Each cell searches the fewest nodes that keep the hot share of the last seven days under a target (`capacity`). The
histories are the sample and, with --traces, clusters made of the public traces ASD and Bitbrains. The seed is that of
the pods' arrival and of the built clusters. The target is 0.1 % of the node half hours, for the bursty VMs of
Bitbrains 0.5 %. The model is fitted on what lay before the window.

The aims: the forecast needs at most 1.08 times the nodes of the true future in every cell; 5,000 services take at most
30 s, without reading and fitting.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from autoscaling.autoscale_settings import CapacityOptions
from autoscaling.capacity.nodes_needed import Capacity, capacity
from benchmarks.capacity_services import many_services
from benchmarks.clusters import build_asd_cluster, build_bitbrains_cluster
from benchmarks.harness import command_line, finish, machine_load, print_aims
from forecast.fit import fit
from forecast.hot_share import HOT_SHARE
from scorer.replay.preparation import Prepared, forecast_with, prepare
from scorer.replay.window import replay_window
from trainer.history.files import HistoryFiles

SAMPLE: Final = Path(__file__).parents[1] / "data" / "sample"
USUAL, BURSTY = 0.001, 0.005
MOST, MOST_SECONDS = 1.08, 30.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One history and seed. nodes, within_requests: by rule; None = no number found."""

    history: str
    seed: int
    target: float
    recorded: int
    nodes: dict[str, int | None]
    within_requests: dict[str, int | None]
    seconds: float

    @property
    def ratio(self) -> float:
        """Nodes by the forecast / nodes by the true future; infinite where one has no number."""
        ours, best = self.nodes["forecast"], self.nodes["oracle"]
        return float("inf") if ours is None or best is None else ours / best


def prepared_from(directory: Path) -> Prepared:
    """Read a history and fit a model on what lies before its last seven days."""
    files = HistoryFiles.open(directory)
    history = files.history()
    window = replay_window(history)
    return prepare(history, files.pod_usage(window.days[0], window.days[-1]), forecast_with(fit), hot=HOT_SHARE)


def cell_of(history: str, found: Capacity, seconds: float) -> Cell:
    """The figures of a cell."""
    report = found.to_json()
    return Cell(
        history=history,
        seed=found.seed,
        target=found.target,
        recorded=report["recorded"],
        nodes=report["nodes"],
        within_requests={rule: figures["nodes_within_requests"] for rule, figures in report["rules"].items()},
        seconds=seconds,
    )


def cells(traces: Path | None, seeds: int) -> Iterator[Cell]:
    """Measure every history with every seed."""
    sample = prepared_from(SAMPLE)
    for seed in range(seeds):
        yield timed("sample", sample, USUAL, seed)
    if traces is None:
        print("NOT MEASURED: ASD and Bitbrains; pass --traces DIR (data/README.md)")
        return
    for name, build, target in (
        ("ASD", build_asd_cluster, USUAL),
        ("Bitbrains", build_bitbrains_cluster, BURSTY),
    ):
        for seed in range(seeds):
            with tempfile.TemporaryDirectory(prefix="capacity-") as scratch:
                build(traces, Path(scratch), seed)
                yield timed(name, prepared_from(Path(scratch)), target, seed)


def timed(name: str, prepared: Prepared, target: float, seed: int) -> Cell:
    """Search, and say how long it took."""
    began = time.perf_counter()
    found = capacity(prepared, CapacityOptions(target=target), seed=seed)
    return cell_of(name, found, time.perf_counter() - began)


def line_of(cell: Cell) -> str:
    """One cell in words."""
    nodes = ", ".join(f"{rule} {count}" for rule, count in cell.nodes.items())
    within = ", ".join(f"{rule} {count}" for rule, count in cell.within_requests.items())
    return (
        f"{cell.history}, seed {cell.seed}, target {cell.target:.1%}, {cell.recorded} recorded: {nodes}; "
        f"forecast / oracle {cell.ratio:.3f}; with requests kept: {within}; {cell.seconds:.0f} s"
    )


def judge(found: Sequence[Cell], seconds: float | None) -> bool:
    """Print the aims beside what came; whether all are met."""
    aims = [
        (f"{name}: most nodes by forecast / by the true future: {worst:.3f}", worst <= MOST)
        for name in dict.fromkeys(cell.history for cell in found)
        for worst in [max(cell.ratio for cell in found if cell.history == name)]
    ]
    if seconds is not None:
        aims.append((f"many services: {seconds:.1f} s ({machine_load()})", seconds <= MOST_SECONDS))
    return print_aims(aims)


def main() -> None:
    """Print the figures; fails where an aim is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the public traces")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--services", type=int, default=5000, help="of the cluster that the time is measured on")
    parser.add_argument("--no-speed", action="store_true", help="do not measure the time")
    parser.add_argument("--json", type=Path, help="write all cells here")
    asked = parser.parse_args()
    found: list[Cell] = []
    for cell in cells(asked.traces, asked.seeds):
        found.append(cell)
        print(line_of(cell), flush=True)
        if asked.json is not None:
            asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    finish(judge(found, None if asked.no_speed else seconds_for(asked)))


def seconds_for(asked: argparse.Namespace) -> float:
    """How long the search takes for many services."""
    cell = timed(f"{asked.services:,} services", many_services(asked.services), USUAL, 0)
    print(line_of(cell), flush=True)
    return cell.seconds


if __name__ == "__main__":
    main()
