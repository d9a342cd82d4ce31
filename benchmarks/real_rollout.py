"""A rollout through the real kube-scheduler, with and without the extender, and the evenings that followed.

python -m benchmarks.real_rollout [--seeds N] [--weights 1,3] [--points 0.2,1] [--night-jobs]

300 pods of the sample on 60 nodes of ratio 1 : 2 : 4 (benchmarks/evening_rollout.py): kube-scheduler alone, the same
with the extender as shipped, and an oracle that knows the week. Node-half-hours from 17:00 to 23:00 over six days in
which a node is over 80 % of its CPU, disk, network or log capacity. With --night-jobs every second node runs a CronJob
pod at the release, which ends an hour later (benchmarks/night_jobs.py).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from benchmarks.evening_rollout import EveningRollout, Outcome, evening_rollout
from benchmarks.harness import numbers
from benchmarks.night_jobs import day_and_zone_of_four_o_clock
from benchmarks.real_scheduler import Cluster
from testing.servers.shipped_extender import shipped_extender

_NEUTRAL = ('outcome="late"', 'outcome="failed"', 'outcome="not_ready"')


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """One rollout by three schedulers.

    neutral_answers : times that the extender did not answer in earnest
    charged         : pods charged to the node that kube-scheduler took, and to another
    """

    native: Outcome
    extender: Outcome
    oracle: Outcome
    neutral_answers: int
    charged: tuple[int, int]


def roll_out(of: EveningRollout, directory: Path, *, weight: int = 1, point: float = 0.2) -> RolloutOutcome:
    """Place the pods by kube-scheduler alone, and with the extender. The defaults are those that are shipped."""
    with Cluster(of, directory) as cluster:
        native = of.outcome(cluster.place([]))
        with cluster.extender("extender", score_per_point=point, weight=weight) as process:
            placed = of.outcome(cluster.place([shipped_extender(process.url, weight=weight)]))
            neutral, charged = _figures(process.http)
    return RolloutOutcome(native, placed, of.outcome(of.oracle()), neutral, charged)


def gap_closed(outcomes: Sequence[RolloutOutcome]) -> float:
    """Share of the way from kube-scheduler alone to the oracle, by all hot evening half hours together."""
    native, ours, oracle = (
        sum(getattr(one, rule).hot for one in outcomes) for rule in ("native", "extender", "oracle")
    )
    return float((native - ours) / (native - oracle))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=4, help="rollouts of different services")
    parser.add_argument("--weights", default="1", help="weights of the extender to try, by commas")
    parser.add_argument("--points", default="0.2", help="score_per_point to try, by commas")
    parser.add_argument("--night-jobs", action="store_true", help="CronJob pods run on every second node until 05:00")
    asked = parser.parse_args()
    print(f"{'':>34}  hot evening   hot all day   CV of CPU peaks   gap closed")
    for weight in numbers(asked.weights):
        for point in map(float, asked.points.split(",")):
            outcomes = []
            for seed in range(asked.seeds):
                today, zone = datetime.now(UTC).date(), None
                if asked.night_jobs:
                    today, zone = day_and_zone_of_four_o_clock(datetime.now(UTC))
                of = evening_rollout(today, seed=seed, night_zone=zone)
                with tempfile.TemporaryDirectory() as scratch:
                    outcomes.append(roll_out(of, Path(scratch), weight=weight, point=point))
                _show(seed, f"weight {weight}, {point:g} %", outcomes[-1])
            print(
                f"weight {weight}, {point:g} %, all together: {gap_closed(outcomes):.1%} of the gap closed", flush=True
            )


def _show(seed: int, what: str, one: RolloutOutcome) -> None:
    lines = {"kube-scheduler": one.native, f"+ extender, {what}": one.extender, "oracle": one.oracle}
    for name, outcome in lines.items():
        figures = f"{outcome.hot:10.2%}   {outcome.hot_all:10.2%}   {outcome.cpu_peak_variation:14.3f}"
        closed = f"   {gap_closed([one]):9.1%}" if outcome is one.extender else ""
        print(f"{f'seed {seed}: {name}':>34}  {figures}{closed}")
    right, wrong = one.charged
    print(f"{'':>34}  {right} pods charged rightly, {wrong} wrongly; {one.neutral_answers} neutral answers", flush=True)


def _figures(http: httpx.Client) -> tuple[int, tuple[int, int]]:
    """Neutral answers, and charges that were right and wrong."""
    values = {}
    for line in http.get("/metrics").raise_for_status().text.splitlines():
        if line.startswith(("forecast_extender_requests_total{", "forecast_extender_charges_total{")):
            name, _, value = line.rpartition(" ")
            values[name] = int(float(value))
    neutral = sum(value for name, value in values.items() if any(one in name for one in _NEUTRAL))
    right, wrong = (values[f'forecast_extender_charges_total{{outcome="{one}"}}'] for one in ("right", "wrong"))
    return neutral, (right, wrong)


if __name__ == "__main__":
    main()
