"""A rollout by the real kube-scheduler, alone and with each of our ways to help it, and the evenings that followed.

    python -m benchmarks.real_rollout [--seeds N] [--ways extender,advisor,loops] [--traces DIR] [--weights 1,3]
                                      [--points 0.2,1] [--night-jobs]

300 pods of a history on 60 nodes of ratio 1 : 2 : 4 (benchmarks/evening_rollout.py). Node-half-hours from 17:00 to
23:00 over six days in which a node is over 80 % of its CPU, disk, network or log capacity:

    alone     kube-scheduler
    extender  kube-scheduler with the extender as shipped
    advisor   kube-scheduler, with pods that the advisor holds until it has nominated their node
    prefer    kube-scheduler, with pods that the webhook has prefer nodes which the advisor names
    loops     our own loops instead of kube-scheduler
    oracle    one after the other, knowing the week

The nodes are in three zones, and a third of them has the image of a service at the release. What each way leaves of the
spread over zones and nodes, and how many pods found their image, is printed beside (benchmarks/zones_and_images.py).

The histories are the sample and, with --traces, clusters made of the public traces ASD and Bitbrains. With --night-jobs
every second node runs a CronJob pod at the release, which ends an hour later (benchmarks/night_jobs.py).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final

import httpx

from base.arrays import Ints
from benchmarks.clusters import build_asd_cluster, build_bitbrains_cluster
from benchmarks.evening_rollout import EveningRollout, Outcome, evening_rollout
from benchmarks.harness import command_line, numbers
from benchmarks.night_jobs import day_and_zone_of_four_o_clock
from benchmarks.preferring_webhook import preferring_webhook
from benchmarks.real_scheduler import Cluster
from benchmarks.zones_and_images import Protected
from placement.gate_exemptions import ADVICE
from testing.servers.shipped_extender import shipped_extender

ALONE, EXTENDER, ADVISOR, PREFER = "alone", "extender", "advisor", "prefer"
LOOPS, ORACLE = "loops", "oracle"
WAYS: Final = (EXTENDER, ADVISOR, PREFER, LOOPS)
SAMPLE: Final = Path("data/sample")

_NEUTRAL = ('outcome="late"', 'outcome="failed"', 'outcome="not_ready"')


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """One rollout.

    by        : outcome by way, ALONE and ORACLE among them
    protected : what kube-scheduler's other scores protect, by way
    said      : what the services counted, for people
    """

    by: Mapping[str, Outcome]
    protected: Mapping[str, Protected]
    said: Sequence[str]


def roll_out(
    of: EveningRollout,
    directory: Path,
    ways: Sequence[str] = WAYS,
    *,
    weight: int = 1,
    point: float = 0.2,
    gate_timeout: str = "",
    prefer_timeout: str = "5s",
) -> RolloutOutcome:
    """Place the pods by kube-scheduler alone, and in each of these ways.

    weight, point : of the extender; as shipped
    gate_timeout  : of the advisor; '' = as shipped
    prefer_timeout : for an answer of the advisor to the webhook. Shipped are 0.3 s
    """
    said = list[str]()

    def by_extender(cluster: Cluster) -> Ints:
        with cluster.extender(EXTENDER, score_per_point=point, weight=weight) as process:
            placed = cluster.place([shipped_extender(process.url, weight=weight)])
            said.append(_extender_figures(process.http))
            return placed

    def by_advisor(cluster: Cluster) -> Ints:
        settings = {"gate_timeout": gate_timeout} if gate_timeout else {}
        with cluster.advisor(ADVISOR, **settings) as process:
            placed = cluster.place([], schedulingGates=[{"name": ADVICE}])
            said.append(f"{process.metric('forecast_advice_pods_total'):.0f} pods released: " + _outcomes(process.http))
            return placed

    def by_preference(cluster: Cluster) -> Ints:
        with (
            cluster.advisor(PREFER) as process,
            preferring_webhook(cluster.plane, directory / "webhook", process, timeout=prefer_timeout) as webhook,
        ):
            placed = cluster.place([])
            said.append("preferences: " + _outcomes(process.http) + "; of the webhook: " + _outcomes(webhook.http))
            return placed

    def by_loops(cluster: Cluster) -> Ints:
        with cluster.loops(LOOPS):
            return cluster.place([], schedulerName="forecast-scheduler")

    place: dict[str, Callable[[Cluster], Ints]] = {
        EXTENDER: by_extender,
        ADVISOR: by_advisor,
        PREFER: by_preference,
        LOOPS: by_loops,
    }
    with Cluster(of, directory) as cluster:
        placed = {ALONE: cluster.place([])} | {way: place[way](cluster) for way in ways} | {ORACLE: of.oracle()}
    return RolloutOutcome(
        {way: of.outcome(rows) for way, rows in placed.items()},
        {way: of.protected(rows) for way, rows in placed.items()},
        said,
    )


def gap_closed(outcomes: Sequence[RolloutOutcome], way: str) -> float:
    """Share of the way from kube-scheduler alone to the oracle, by all hot evening half hours together."""
    alone, ours, oracle = (sum(one.by[rule].hot for one in outcomes) for rule in (ALONE, way, ORACLE))
    return float((alone - ours) / (alone - oracle))


@contextmanager
def histories(traces: Path | None) -> Iterator[Mapping[str, Path]]:
    """Yield directories of histories by name; the traces are written into one that is gone afterwards."""
    found = {"sample": SAMPLE}
    if traces is None:
        print("NOT MEASURED: ASD and Bitbrains; pass --traces DIR (data/README.md)")
        yield found
        return
    with tempfile.TemporaryDirectory() as scratch:
        for name, build in (("asd", build_asd_cluster), ("bitbrains", build_bitbrains_cluster)):
            found[name] = Path(scratch) / name
            build(traces, found[name], 0)
        yield found


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", default="0,1,2,3", help="each draws other services, by commas")
    parser.add_argument("--ways", default=",".join(WAYS), help="by commas")
    parser.add_argument("--traces", type=Path, help="directory of the public traces")
    parser.add_argument("--only", default="", help="one of the histories")
    parser.add_argument("--weights", default="1", help="weights of the extender to try, by commas")
    parser.add_argument("--points", default="0.2", help="score_per_point of the extender to try, by commas")
    parser.add_argument("--gate-timeout", default="", help="of the advisor; as shipped if not said")
    parser.add_argument(
        "--prefer-timeout", default="5s", help="for an answer about a pod that prefers nodes; shipped are 300ms"
    )
    parser.add_argument("--night-jobs", action="store_true", help="CronJob pods run on every second node until 05:00")
    asked = parser.parse_args()
    ways = asked.ways.split(",")
    with histories(asked.traces) as found:
        for name, history in found.items():
            if asked.only not in ("", name):
                continue
            for weight in numbers(asked.weights):
                for point in map(float, asked.points.split(",")):
                    print(f"{name}, extender with weight {weight} and {point:g} % a point")
                    settings = {"weight": weight, "point": point, "gate_timeout": asked.gate_timeout}
                    settings["prefer_timeout"] = asked.prefer_timeout
                    _one_history(history, numbers(asked.seeds), ways, settings, night_jobs=asked.night_jobs)


def _one_history(
    history: Path, seeds: Sequence[int], ways: Sequence[str], settings: Mapping[str, Any], *, night_jobs: bool
) -> None:
    print(f"{'':>18}  hot evening  hot all day  CV of CPU peaks  zone skew  beside own  with image  gap closed")
    outcomes = []
    for seed in seeds:
        today, zone = datetime.now(UTC).date(), None
        if night_jobs:
            today, zone = day_and_zone_of_four_o_clock(datetime.now(UTC))
        of = evening_rollout(today, history=history, seed=seed, night_zone=zone)
        with tempfile.TemporaryDirectory() as scratch:
            outcomes.append(roll_out(of, Path(scratch), ways, **settings))
        _show(seed, outcomes[-1], ways)
    for way in ways:
        least = min(gap_closed([one], way) for one in outcomes)
        print(f"  {way}: {gap_closed(outcomes, way):.1%} of the gap closed, {least:.1%} at least", flush=True)
    for way in (ALONE, *ways, ORACLE):
        kept = [one.protected[way] for one in outcomes]
        skew, beside, image = (
            mean(getattr(one, field) for one in kept) for field in ("zone_skew", "beside_own", "with_image")
        )
        print(
            f"  {way}: zone skew {skew:.2f}, {beside:.1%} beside a pod of their service, {image:.1%} with their image"
        )


def _show(seed: int, one: RolloutOutcome, ways: Sequence[str]) -> None:
    for way, outcome in one.by.items():
        closed, kept = f"{gap_closed([one], way):11.1%}" if way in ways else "", one.protected[way]
        print(
            f"{f'seed {seed}: {way}':>18}  {outcome.hot:11.2%}  {outcome.hot_all:11.2%}  "
            f"{outcome.cpu_peak_variation:15.3f}  {kept.zone_skew:9.2f}  {kept.beside_own:10.1%}  "
            f"{kept.with_image:10.1%} {closed}"
        )
    for line in one.said:
        print(f"{'':>20}{line}", flush=True)


def _extender_figures(http: httpx.Client) -> str:
    """Neutral answers, and charges that were right and wrong."""
    values = _counters(http, ("forecast_extender_requests_total{", "forecast_extender_charges_total{"))
    neutral = sum(value for name, value in values.items() if any(one in name for one in _NEUTRAL))
    right, wrong = (values[f'forecast_extender_charges_total{{outcome="{one}"}}'] for one in ("right", "wrong"))
    return f"{right} pods charged rightly, {wrong} wrongly; {neutral} neutral answers"


def _outcomes(http: httpx.Client) -> str:
    names = ("advice_pods", "preferences", "preference_charges", "decisions", "webhook_preferences")
    values = _counters(http, tuple(f"forecast_{name}_total{{" for name in names))
    return ", ".join(f"{value} {name.partition('{')[2].rstrip('}')}" for name, value in values.items() if value)


def _counters(http: httpx.Client, names: tuple[str, ...]) -> dict[str, int]:
    lines = http.get("/metrics").raise_for_status().text.splitlines()
    split = (line.rpartition(" ") for line in lines if line.startswith(names))
    return {name: int(float(value)) for name, _, value in split}


if __name__ == "__main__":
    main()
