"""How many more pods an untouched kube-scheduler admits with recommended requests, and how hot nodes are then.

    python -m benchmarks.requests [--traces DIR] [--seeds N] [--real] [--json FILE]

Nodes are fixed. Pods of the recorded services, then copies of them, arrive in a random order until one fits nowhere
(benchmarks/requests_admission.py). Their week is played back. Each set of requests is judged in two ways: `full`, with
nodes full of requests; and `cool`, the most pods with which at most 0.1 % of the node half hours are hot (CPU, disk,
network or log above 80 % of capacity).

    today        as the pods request now: what people guessed
    vpa          as the VerticalPodAutoscaler would recommend (benchmarks/requests_vpa.py)
    forecast     as `forecast-scheduler requests` recommends, once for all hours, with its defaults
    oracle       the same from the true future

Only what lay before the week is known to `vpa` and `forecast`. The aim: nodes full by `forecast` are hot in at most
0.1 % of the half hours, and hold at least 20 % more pods than can be admitted by today's requests at the same limit.
With --real the real kube-scheduler also admits pods by today's and by the recommended requests, to compare the numbers.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from autoscaling.autoscale_settings import RequestOptions
from autoscaling.requests.expected_use import recorded_use
from autoscaling.requests.recommending import recommend
from base.arrays import Floats
from base.excluded import ExcludedOptions
from benchmarks.clusters import build_asd_cluster, build_bitbrains_cluster
from benchmarks.harness import command_line, finish, outcome
from benchmarks.requests_admission import Admission, admission
from benchmarks.requests_real import compared
from benchmarks.requests_vpa import vpa_requests
from forecast.fit import fit
from forecast.history import History
from forecast.hot_share import HOT_SHARE
from scorer.replay.preparation import Prepared, forecast_with, prepare
from scorer.replay.window import replay_window
from trainer.history.files import HistoryFiles

SAMPLE: Final = Path(__file__).parents[1] / "data" / "sample"
HOT_LIMIT, MORE_PODS, CLOSE = 0.001, 1.2, 0.01


@dataclass(frozen=True, slots=True)
class Cell:
    """One history and seed. sets: by name of the set of requests"""

    history: str
    seed: int
    recorded_pods: int
    sets: Mapping[str, Admission]
    seconds: float

    @property
    def more(self) -> float:
        """Pods on nodes full by the forecast / pods that today's requests admit at the hot limit."""
        return self.sets["forecast"].full.pods / max(self.sets["today"].cool.pods, 1)

    @property
    def holds(self) -> bool:
        """Whether the aim is met."""
        return self.sets["forecast"].full.hot <= HOT_LIMIT and self.more >= MORE_PODS


def prepared_from(directory: Path) -> tuple[History, Prepared]:
    """Read a history and fit a model on what lies before its last seven days."""
    files = HistoryFiles.open(directory)
    history = files.history()
    window = replay_window(history)
    return history, prepare(
        history, files.pod_usage(window.days[0], window.days[-1]), forecast_with(fit), hot=HOT_SHARE
    )


def request_sets(history: History, prepared: Prepared, options: RequestOptions) -> Mapping[str, Floats]:
    """Requests of one pod of each service by each rival: (n_services, 2)."""
    today = recorded_use(history, prepared).requests
    sets = {"today": today, "vpa": vpa_requests(history.before(prepared.window.first_day), today)}
    for rule in ("forecast", "oracle"):
        found = recommend(recorded_use(history, prepared, rule=rule), options, HOT_SHARE, ExcludedOptions())
        sets[rule] = np.array([one.request for one in found])
    return sets


def measured(name: str, history: History, prepared: Prepared, seed: int) -> Cell:
    """Search for every set of requests."""
    began = time.perf_counter()
    found = {
        rival: admission(prepared.recording, requests, seed, hot_limit=HOT_LIMIT)
        for rival, requests in request_sets(history, prepared, RequestOptions()).items()
    }
    return Cell(name, seed, len(prepared.recording.service), found, time.perf_counter() - began)


def cells(traces: Path | None, seeds: int) -> Iterator[Cell]:
    """Measure every history with every seed."""
    history, sample = prepared_from(SAMPLE)
    for seed in range(seeds):
        yield measured("sample", history, sample, seed)
    if traces is None:
        print("NOT MEASURED: ASD and Bitbrains; pass --traces DIR (data/README.md)")
        return
    for name, build in (("ASD", build_asd_cluster), ("Bitbrains", build_bitbrains_cluster)):
        for seed in range(seeds):
            with tempfile.TemporaryDirectory(prefix="requests-") as scratch:
                build(traces, Path(scratch), seed)
                yield measured(name, *prepared_from(Path(scratch)), seed)


def line_of(cell: Cell) -> str:
    """One cell in words."""
    sets = "; ".join(
        f"{name} full {one.full.pods} (hot {one.full.hot:.2%}), cool {one.cool.pods}" for name, one in cell.sets.items()
    )
    return (
        f"{cell.history}, seed {cell.seed}, {cell.recorded_pods} pods recorded: {sets}; "
        f"forecast full / today cool {cell.more:.2f}; {cell.seconds:.0f} s"
    )


def judge(found: Sequence[Cell]) -> bool:
    """Print the aim beside what came; whether it is met everywhere."""
    for name in dict.fromkeys(cell.history for cell in found):
        ours = [cell for cell in found if cell.history == name]
        hot = max(cell.sets["forecast"].full.hot for cell in ours)
        text = f"{name}: at least {min(cell.more for cell in ours):.2f} times the pods, hot at most {hot:.2%}"
        print(f"{outcome(all(cell.holds for cell in ours))}  {text}")
    return all(cell.holds for cell in found)


def main() -> None:
    """Print the figures; fails where the aim is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the public traces")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--real", action="store_true", help="compare with the real kube-scheduler, on the sample")
    parser.add_argument("--json", type=Path, help="write all cells here")
    asked = parser.parse_args()
    found: list[Cell] = []
    for cell in cells(asked.traces, asked.seeds):
        found.append(cell)
        print(line_of(cell), flush=True)
        if asked.json is not None:
            asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    holds = judge(found)
    finish(agrees(*prepared_from(SAMPLE)) and holds if asked.real else holds)


def agrees(history: History, prepared: Prepared) -> bool:
    """Print how many pods the real kube-scheduler and the replay admit on the sample; whether they agree."""
    holds = True
    sets = request_sets(history, prepared, RequestOptions())
    for name in ("today", "forecast"):
        real, replayed = compared(prepared.recording, sets[name], 0)
        is_close = abs(real - replayed) <= CLOSE * real
        print(f"{outcome(is_close)}  {name}: kube-scheduler admits {real} pods, the replay {replayed}")
        holds &= is_close
    return holds


if __name__ == "__main__":
    main()
