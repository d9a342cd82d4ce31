"""A rollout through the real kube-scheduler, with and without the extender, and the evenings that followed.

python -m benchmarks.real_rollout [--seeds N] [--weights 1,5] [--points 0.2,1]

300 pods of the sample on 60 nodes of ratio 1 : 2 : 4 (benchmarks/evening_rollout.py): kube-scheduler alone, the same
with the extender as shipped, and an oracle that knows the week. Node-half-hours from 17:00 to 23:00 over seven days in
which a node is over 80 % of its CPU, disk, network or log capacity.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.evening_rollout import Outcome, evening_rollout
from benchmarks.real_scheduler import Cluster, shipped_extender
from forecast.arrays import Ints

__all__ = ["main"]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="rollouts of different services")
    parser.add_argument("--weights", default="1", help="weights of the extender to try, by commas")
    parser.add_argument("--points", default="0.2", help="score_per_point to try, by commas")
    asked = parser.parse_args()
    print(f"{'':>28}  hot evening   hot all day   CV of CPU peaks   gap closed")
    for seed in range(asked.seeds):
        rollout = evening_rollout(datetime.now(UTC).date(), seed=seed)
        with tempfile.TemporaryDirectory() as scratch, Cluster(rollout, Path(scratch)) as cluster:
            oracle = rollout.outcome(rollout.oracle())
            native = rollout.outcome(cluster.place([]))
            _show(f"seed {seed}: kube-scheduler", native, native, oracle)
            for weight in map(int, asked.weights.split(",")):
                for point in map(float, asked.points.split(",")):
                    placed = _with_extender(cluster, weight, point)
                    _show(f"+ extender, weight {weight}, {point:g} %", rollout.outcome(placed), native, oracle)
            _show("oracle", oracle, native, oracle)


def _with_extender(cluster: Cluster, weight: int, point: float) -> Ints:
    with cluster.extender(f"extender-{weight}-{point}", score_per_point=point, weight=weight) as process:
        placed = cluster.place([shipped_extender(process.url, weight=weight)])
        for line in process.http.get("/metrics").text.splitlines():
            if line.startswith(
                ("forecast_extender_requests_total", "forecast_extender_charges_total")
            ) and not line.endswith(" 0.0"):
                print(line)
        return placed


def _show(what: str, outcome: Outcome, native: Outcome, oracle: Outcome) -> None:
    closed = (native.hot - outcome.hot) / (native.hot - oracle.hot) if native.hot > oracle.hot else float("nan")
    figures = f"{outcome.hot:10.2%}   {outcome.hot_all:10.2%}   {outcome.cpu_peak_variation:14.3f}   {closed:9.1%}"
    print(f"{what:>28}  {figures}", flush=True)


if __name__ == "__main__":
    main()
