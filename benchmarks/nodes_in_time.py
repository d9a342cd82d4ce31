"""Whether nodes are there before a ramp, at what price, and whether nodes go that are needed again.

    python -m benchmarks.nodes_in_time [--traces DIR] [--seeds N] [--days N] [--only NAME] [--json FILE]

Each cell plays the last days of one history: replicas follow the load minute by minute (nodes_in_time_services.py), an
autoscaler adds and removes nodes by its own rules (nodes_in_time_cluster.py). The sample has one seed, the clusters of
the public traces have three. The model is fitted once, on the 28 days before.

Buffers, under Cluster Autoscaler: none; static, the smallest that brings the p99 of the wait to 10 s; forecast; the
true future of the same minutes. A wait counts if the pod was added in an hour at whose end the pods request more than
at its beginning, by 1 % of the week's peak. The price is the node-hours beyond those without a buffer. It
is as noisy as the autoscaler; what a buffer asks for (reserved) is not.

Guard, with the forecast buffer, under Cluster Autoscaler and under Karpenter: nodes that were removed and ordered again
within 4 hours; without it, by the forecast, the same with `always`, by the true future.

The aims: p99 as with the static buffer, for at most half of its price; no removal of a node that is needed within 4 h.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from autoscaling.autoscale_settings import BufferOptions, GuardOptions
from autoscaling.nodes.buffers import Buffer, buffers, buffers_for
from autoscaling.nodes.guard import GuardedNodes, marks, marks_for
from autoscaling.services_ahead import PodsAhead, ServicesAhead
from base.arrays import Bools, Floats, Ints
from benchmarks.harness import command_line, finish, print_aims
from benchmarks.nodes_in_time_cluster import MOST_NODES, Autoscaler, Outcome, Replay
from benchmarks.nodes_in_time_services import Services, forecast_of, histories, history_in, services_of

LEAD_SECONDS: Final = 300.0
"""A node starts in 180 s; the autoscaler scans every 10 s, and buffers are written every minute."""
ENOUGH_SECONDS: Final = 10.0
"""A p99 of the wait that counts as no wait: less than a scan of the autoscaler."""
GUARD_MINUTES: Final = 5
NEEDED_SECONDS: Final = GuardOptions.horizon
MOST_PRICE: Final = 0.5
_RISE: Final = 0.01

BUFFERS: Final = BufferOptions(lead=LEAD_SECONDS)
GUARD: Final = GuardOptions()


@dataclass(frozen=True, slots=True)
class Run:
    """p99, mean: seconds that pods waited at ramps; reserved: node-hours that the buffer asks for; node_hours: all that
    there were; needed_again: of the nodes that were removed."""

    p99: float
    mean: float
    reserved: float
    node_hours: float
    removed: int
    needed_again: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One history and seed. runs: by name; static: chunks of the static buffer; autoscaled: share of the services."""

    history: str
    seed: int
    autoscaled: float
    static: int
    runs: dict[str, Run]

    def price(self, name: str) -> float:
        """Node-hours beyond those without a buffer."""
        return self.runs[name].node_hours - self.runs["none"].node_hours

    @property
    def share(self) -> float:
        """Price of the forecast / price of the static buffer; infinite if that costs nothing."""
        return self.price("forecast") / self.price("static") if self.price("static") > 0 else math.inf

    @property
    def reserved_share(self) -> float:
        """The same by what the buffers ask for, whatever the autoscaler makes of it."""
        return self.runs["forecast"].reserved / self.runs["static"].reserved


class Measured:
    """One history with a forecast, and the runs on it."""

    def __init__(self, services: Services, ahead: ServicesAhead) -> None:
        self.services, self.ahead = services, ahead
        self.replicas = services.replicas.astype(np.float64)
        self.ramp = ramp_hours(services.requested)
        (first,) = buffers(ahead, services.begins, BUFFERS)
        self.chunk = np.array([first.cpu_cores, first.memory_bytes])
        self.by_forecast, self.by_future = self._chunks()

    def run(
        self, chunks: Ints | int, autoscaler: Autoscaler = Autoscaler.CLUSTER_AUTOSCALER, need: Need | None = None
    ) -> Run:
        """Play all minutes. chunks: of each minute, or always; need: of the guard, None = there is none."""
        by_minute = np.broadcast_to(chunks, self.replicas.shape[1])
        played = Replay(
            self.services,
            autoscaler,
            chunk=self.chunk,
            chunks_at=lambda minute: int(by_minute[minute]),
            marked_at=None if need is None else Guard(need, self.services),
        ).run()
        return self._figures(played, float(by_minute.sum() * self.chunk[0] / self.services.allocatable[0] / 60))

    def smallest_static(self) -> tuple[int, Run]:
        """The smallest static buffer with which pods do not wait at ramps."""
        for chunks in range(1, 200):
            found = self.run(chunks)
            if found.p99 <= ENOUGH_SECONDS:
                return chunks, found
        raise RuntimeError("no static buffer of up to 200 chunks is enough")

    def ahead_at(self, minute: int) -> ServicesAhead:
        """What is expected, with the replicas of a minute."""
        return replace(self.ahead, replicas=self.replicas[:, minute])

    def by_the_forecast(self, nodes: GuardedNodes, minute: int, options: GuardOptions = GUARD) -> Sequence[str]:
        """Nodes that the guard keeps."""
        return marks(self.ahead_at(minute), nodes, self.services.begins + 60.0 * minute, options).keep

    def always(self, nodes: GuardedNodes, minute: int) -> Sequence[str]:
        """The same with `always`."""
        return self.by_the_forecast(nodes, minute, GUARD.replace(always=True))

    def by_the_future(self, nodes: GuardedNodes, minute: int) -> Sequence[str]:
        """Nodes that a guard keeps that knows the highest need of the hours ahead."""
        end = minute + int(NEEDED_SECONDS / 60) + 1
        return marks_for(np.array([self.services.requested[minute:end].max(), 0.0]), nodes, GUARD).keep

    def _chunks(self) -> tuple[Ints, Ints]:
        """(n_minutes,) by the forecast, and by the true replicas within the lead."""
        lead = int(LEAD_SECONDS / 60)
        padded = np.pad(self.replicas, ((0, 0), (0, lead)), mode="edge")
        within = sliding_window_view(padded, lead + 1, axis=1)  # (n_services, n_minutes, lead + 1)
        by_forecast, by_future = [], []
        for minute in range(self.replicas.shape[1]):
            now = self.ahead_at(minute)
            by_forecast.append(_chunks_of(buffers(now, self.services.begins + 60.0 * minute, BUFFERS)))
            true = PodsAhead(within[:, minute], np.zeros_like(within[:, minute]))
            by_future.append(_chunks_of(buffers_for(now, true, BUFFERS)))
        return np.array(by_forecast), np.array(by_future)

    def _figures(self, played: Outcome, reserved: float) -> Run:
        waits = np.array([wait for at, wait in played.waits if self.ramp[min(int(at // 3600), len(self.ramp) - 1)]])
        return Run(
            p99=float(np.quantile(waits, 0.99)),
            mean=float(waits.mean()),
            reserved=reserved,
            node_hours=played.node_hours,
            removed=len(played.removed),
            needed_again=played.needed_again(NEEDED_SECONDS),
        )


Need = Callable[[GuardedNodes, int], Sequence[str]]


class Guard:
    """Marks of a run, which are decided anew every few minutes."""

    def __init__(self, need: Need, services: Services) -> None:
        self._need, self._services = need, services
        self._until = np.zeros(MOST_NODES)
        self._decided = -GUARD_MINUTES
        self._kept: set[int] = set()

    def __call__(self, minute: int, played: Replay) -> set[int]:
        """Rows of the nodes that must not be removed."""
        if minute - self._decided >= GUARD_MINUTES:
            self._decided = minute
            rows = np.flatnonzero(played.alive)
            nodes = GuardedNodes(
                names=tuple(map(str, rows.tolist())),
                allocatable=np.tile(self._services.allocatable, (len(rows), 1)),
                requested=played.used[rows],
                usable=np.ones(len(rows), dtype=np.bool_),
                until=self._until[rows],
            )
            self._kept = {int(name) for name in self._need(nodes, minute)}
            self._until[:] = 0.0
            self._until[list(self._kept)] = np.inf
        return self._kept


def ramp_hours(requested: Floats) -> Bools:
    """(n_hours,): whether the pods request more at its end, by a share of the highest; requested: (n_minutes,)."""
    hours = requested.reshape(-1, 60)
    ends = np.append(hours[1:, 0], hours[-1, -1])
    return np.asarray(ends - hours[:, 0] > _RISE * requested.max())


def _chunks_of(found: Sequence[Buffer]) -> int:
    return sum(one.chunks for one in found)


def measure(name: str, seed: int, directory: Path, days: int) -> Cell:
    """All runs on one history."""
    services = services_of(history_in(directory), days)
    measured = Measured(services, forecast_of(services))
    chunks, static = measured.smallest_static()
    runs = {
        "none": measured.run(0),
        "static": static,
        "forecast": measured.run(measured.by_forecast),
        "future": measured.run(measured.by_future),
    }
    for autoscaler in Autoscaler:
        for guard, need in (
            ("", None),
            ("guard", measured.by_the_forecast),
            ("guard, always", measured.always),
            ("future guard", measured.by_the_future),
        ):
            runs[f"{autoscaler.value} {guard}".strip()] = measured.run(measured.by_forecast, autoscaler, need)
    return Cell(name, seed, float(measured.ahead.autoscaled.mean()), chunks, runs)


def cells(asked: argparse.Namespace) -> Iterator[Cell]:
    """Measure every history with every seed."""
    if asked.traces is None:
        print("NOT MEASURED: ASD and Bitbrains; pass --traces DIR (data/README.md)")
    for seed in range(asked.seeds if asked.traces is not None else 1):
        with histories(asked.traces, seed, asked.only) as found:
            for name, directory in found.items():
                yield measure(name, seed, directory, asked.days)


def lines_of(cell: Cell) -> Iterator[str]:
    """One cell in words."""
    yield (
        f"{cell.history}, seed {cell.seed}: {cell.autoscaled:.0%} of the services known as autoscaled; static buffer "
        f"of {cell.static} chunks; forecast / static buffer: price {cell.share:.2f}, reserved {cell.reserved_share:.2f}"
    )
    for name, run in cell.runs.items():
        yield (
            f"  {name:<34} wait p99 {run.p99:5.1f} s, mean {run.mean:5.2f} s; {run.node_hours:6.0f} node-hours "
            f"({cell.price(name):+5.0f}); {run.removed:4d} nodes removed, {run.needed_again:3d} needed again"
        )


def judge(found: Sequence[Cell]) -> bool:
    """Print the aims beside what came; whether all are met."""
    aims = []
    for name in dict.fromkeys(cell.history for cell in found):
        of_name = [cell for cell in found if cell.history == name]
        p99 = max(cell.runs["forecast"].p99 for cell in of_name)
        price = sum(cell.price("forecast") for cell in of_name) / max(sum(c.price("static") for c in of_name), 1e-9)
        aims += [
            (f"{name}: p99 of the wait at ramps {p99:.1f} s", p99 <= ENOUGH_SECONDS),
            (f"{name}: price / price of the static buffer {price:.2f}", price <= MOST_PRICE),
        ]
        for autoscaler in Autoscaler:
            bare, ours, always = (
                sum(cell.runs[f"{autoscaler.value}{guard}"].needed_again for cell in of_name)
                for guard in ("", " guard", " guard, always")
            )
            text = f"{ours} nodes needed again, {always} with always, {bare} without the guard"
            aims.append((f"{name}, {autoscaler.value}: {text}", not ours))
    return print_aims(aims)


def main() -> None:
    """Print the figures; fails where an aim is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the public traces")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=int, default=7, help="that are played")
    parser.add_argument("--only", default="", help="this history only")
    parser.add_argument("--json", type=Path, help="write all cells here")
    asked = parser.parse_args()
    found: list[Cell] = []
    for cell in cells(asked):
        found.append(cell)
        print("\n".join(lines_of(cell)), flush=True)
        if asked.json is not None:
            asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    finish(judge(found))


if __name__ == "__main__":
    main()
