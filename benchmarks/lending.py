"""Lending of idle quota: all of it, as scheduler-plugins lends, against what the owner is not expected to need.

    python -m benchmarks.lending [--traces DIR] [--seeds N] [--demand SHARE] [--json FILE]

Services of the sample (with --traces also of ASD) scale with their load for a week; what each night's model expected of
them is known (gpu_tide_week.py). A seed deals the services to six tenants, whose min is the highest sum of requests of
the two weeks before, draws the size of pods, and draws the jobs of a seventh tenant without a min. The cluster has room
for all mins together. Jobs come all day, for a share of the core-hours that are idle. Twenty kinds of them run for
minutes to hours; a run is expected to last as long as 95 of 100 of its kind.

Admission and needs are those of `tenants/`: the rules differ in what owners are expected to need alone. A pod of an
owner that finds no room waits until jobs are evicted, the newest first, whose work is lost; they start again later.

    all idle      nothing is expected: idle min is lent as a whole
    by forecast   needs by the model of the night, mended by the pods that there are
    true future   the same with the load that came
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.clusters import Trace, build_plain
from benchmarks.gpu_tide_week import TideWeek, tide_week
from benchmarks.harness import command_line
from cluster.predicted.horizon import LIVE_HALF_LIFE_SLOTS
from forecast.calendar import SLOTS_PER_DAY
from tenants.elastic_quota import ElasticQuota
from tenants.need import ServicePods, most_within, needed, pods_of_lasting
from tenants.quota_admission import Use, committed, denial
from tenants.quota_tree import QuotaTree, quota_tree

RULES: Final = ("all idle", "by forecast", "true future")
BORROWER: Final = "batch"

_TENANTS: Final = 6
_KINDS: Final = 20
_STEPS_PER_SLOT: Final = 6
_STEP_HOURS: Final = 0.5 / _STEPS_PER_SLOT
_SPREAD: Final = 0.2
"""Of the logarithm of the run lengths of one kind; 1.645 of it above the middle are as long as 95 of 100."""
_LOOK_BEHIND: Final = 100
"""Jobs that are tried at each step behind the first one that is not admitted."""


@dataclass(frozen=True, slots=True)
class Scene:
    """
    tree     : six owners and the borrower, in thousandths of a core
    row      : (n_services,) quota of each
    units    : (n_services, 1) of one pod
    pods     : (n_services, n_slots) that came
    forecast : (n_services, n_days, 7 * 48) as expected at each midnight
    jobs     : (n_jobs, 4) step of arrival, units, steps that it runs, seconds that it is expected to run
    """

    tree: QuotaTree
    row: Ints
    units: Ints
    pods: Floats
    forecast: Floats
    jobs: Floats


@dataclass(slots=True)
class Job:
    """number: of the scene; began: step, -1 = it waits."""

    number: int
    units: int
    steps: int
    seconds: float
    began: int = -1


@dataclass(slots=True)
class Outcome:
    """
    evicted        : jobs that gave way
    lost, kept     : core-hours of their runs, and of the runs that went on
    late           : pods of owners that found no room when they came
    late_in_ramp   : of these, those between 17:00 and 22:00
    grown          : pods of owners that came
    """

    evicted: int = 0
    lost: float = 0.0
    kept: float = 0.0
    late: int = 0
    late_in_ramp: int = 0
    grown: int = 0
    running: list[Job] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Return the figures as `--json` writes them."""
        return {key: value for key, value in asdict(self).items() if key != "running"}


def drawn_scene(week: TideWeek, seed: int, demand: float) -> Scene:
    """Deal services to tenants, and draw the jobs. demand: share of the core-hours that are idle"""
    rng = np.random.default_rng(seed)
    n_services = len(week.services)
    owner = rng.permutation(np.arange(n_services) % _TENANTS)
    units = rng.choice([250, 500, 1000, 2000], size=(n_services, 1))
    asked = week.before * units  # (n_services, n_slots)
    least = [float(asked[owner == number].sum(axis=0).max()) / 1000 for number in range(_TENANTS)]
    quotas = [ElasticQuota(f"t{number}", f"t{number}", guaranteed={"cpu": one}) for number, one in enumerate(least)]
    tree = quota_tree([*quotas, ElasticQuota(BORROWER, BORROWER)])
    row_of = {quota.name: row for row, quota in enumerate(tree.quotas)}
    idle = float(np.maximum(sum(least) * 1000 - (week.replicas * units).sum(axis=0), 0).sum()) / 2000  # core-hours
    return Scene(
        tree=tree,
        row=np.array([row_of[f"t{number}"] for number in owner], dtype=np.int64),
        units=units.astype(np.int64),
        pods=week.replicas,
        forecast=week.forecast,
        jobs=_jobs(rng, demand * idle, week.replicas.shape[1] * _STEPS_PER_SLOT),
    )


def play(scene: Scene, rule: str) -> Outcome:
    """Play the week under one rule."""
    tree, found = scene.tree, Outcome()
    batch = next(row for row, quota in enumerate(tree.quotas) if quota.name == BORROWER)
    room = int(tree.guaranteed.sum())
    jobs = [Job(number, int(row[1]), int(row[2]), float(row[3])) for number, row in enumerate(scene.jobs)]
    arrivals = scene.jobs[:, 0].astype(np.int64)
    waiting: list[Job] = []
    come = 0
    within: Sequence[Ints] | None = None
    for step in range(scene.pods.shape[1] * _STEPS_PER_SLOT):
        slot, begins = step // _STEPS_PER_SLOT, step % _STEPS_PER_SLOT == 0
        _end(found, step)
        if begins:
            _grow(scene, slot, step, room, found, waiting)
            within = None if rule == "all idle" else _within(scene, slot, rule)
        while come < len(jobs) and arrivals[come] <= step:
            waiting.append(jobs[come])
            come += 1
        waiting = _admit(scene, slot, step, batch, within, found, waiting)
    found.kept += sum(job.units * (scene.pods.shape[1] * _STEPS_PER_SLOT - job.began) for job in found.running)
    found.kept *= _STEP_HOURS / 1000
    found.lost *= _STEP_HOURS / 1000
    return found


def _jobs(rng: np.random.Generator, core_hours: float, n_steps: int) -> Floats:
    middle = np.exp(rng.uniform(np.log(0.25), np.log(6.0), _KINDS))  # hours
    units = rng.choice([500, 1000, 2000, 4000], size=_KINDS)
    rows = []
    left = core_hours
    while left > 0:
        kind = int(rng.integers(_KINDS))
        hours = float(middle[kind] * np.exp(_SPREAD * rng.standard_normal()))
        expected = float(middle[kind] * np.exp(1.645 * _SPREAD))
        rows.append([rng.uniform(0, n_steps), units[kind], max(1, round(hours / _STEP_HOURS)), 3600 * expected])
        left -= units[kind] / 1000 * hours
    return np.array(sorted(rows))


def _within(scene: Scene, slot: int, rule: str) -> Sequence[Ints]:
    """Needs from the half hour under way on."""
    n_steps = SLOTS_PER_DAY + 2
    day, now = divmod(slot, SLOTS_PER_DAY)
    if rule == "true future":
        ahead = scene.pods[:, slot : slot + n_steps]
    else:
        expected = scene.forecast[:, day, now : now + n_steps]
        follows = np.ones(len(expected), dtype=bool)
        ahead = pods_of_lasting(scene.pods[:, slot].astype(np.int64), expected, follows, half_life=LIVE_HALF_LIFE_SLOTS)
    services = ServicePods(scene.row, scene.units, ahead, np.zeros_like(ahead))
    return most_within(needed(scene.tree, services))


def _end(found: Outcome, step: int) -> None:
    going = []
    for job in found.running:
        if job.began + job.steps <= step:
            found.kept += job.units * job.steps
        else:
            going.append(job)
    found.running = going


def _grow(scene: Scene, slot: int, step: int, room: int, found: Outcome, waiting: list[Job]) -> None:
    """Owners' pods of the half hour come; what they need beyond the room that is free is evicted for them."""
    before = scene.pods[:, max(slot - 1, 0)]
    more = np.maximum(scene.pods[:, slot] - before, 0)
    found.grown += int(more.sum())
    asked = int(scene.pods[:, slot] @ scene.units[:, 0])
    lacking = asked + sum(job.units for job in found.running) - room
    if lacking <= 0:
        return
    came = more @ scene.units[:, 0]
    late = round(more.sum() * min(1.0, lacking / came)) if came else 0
    found.late += late
    if 34 <= slot % SLOTS_PER_DAY < 44:
        found.late_in_ramp += late
    for job in sorted(found.running, key=lambda one: (-one.began, -one.number)):
        if lacking <= 0:
            break
        lacking -= job.units
        found.evicted += 1
        found.lost += job.units * (step - job.began)
        found.running.remove(job)
        job.began = -1
        waiting.insert(0, job)


def _admit(
    scene: Scene, slot: int, step: int, batch: int, within: Sequence[Ints] | None, found: Outcome, waiting: list[Job]
) -> list[Job]:
    tree = scene.tree
    direct = np.zeros_like(tree.guaranteed)
    np.add.at(direct[:, 0], scene.row, (scene.pods[:, slot] * scene.units[:, 0]).astype(np.int64))
    direct[batch, 0] = sum(job.units for job in found.running)
    nothing = np.zeros_like(direct)
    left, refused = [], 0
    for at, job in enumerate(waiting):
        if refused > _LOOK_BEHIND:
            left += waiting[at:]
            break
        expected = None
        if within is not None:
            expected = within[min(int(job.seconds // 1800) + 2, len(within)) - 1]
        use = Use(direct, direct, nothing, expected)
        if denial(tree, use, batch, (job.units,), held_back=committed(tree, use)) is None:
            job.began = step
            found.running.append(job)
            direct[batch, 0] += job.units
        else:
            refused += 1
            left.append(job)
    return left


def weeks(traces: Path | None) -> Iterator[tuple[str, TideWeek]]:
    """Yield the week of each trace by its name."""
    yield "sample", tide_week()
    if traces is None:
        print("NOT MEASURED: ASD; pass --traces DIR (data/README.md)")
        return
    with tempfile.TemporaryDirectory(prefix="lending-") as scratch:
        build_plain(Trace.ASD, traces, Path(scratch) / "asd")
        yield "ASD", tide_week(Path(scratch) / "asd")


def main() -> None:
    """Print the figures of all seeds side by side."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the public traces")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--demand", type=float, default=0.7, help="core-hours of jobs, as a share of those idle")
    parser.add_argument("--json", type=Path, help="write all figures here")
    asked = parser.parse_args()
    written: dict[str, list[dict[str, dict[str, float]]]] = {}
    for name, week in weeks(asked.traces):
        print(
            f"{name}, {len(week.services)} services, medians of {asked.seeds} seeds (of 1,000 owners' pods that came)"
        )
        print(f"{'':14}{'evicted':>9}{'late':>9}{'17-22 h':>9}{'kept h':>11}{'lost h':>9}{'kept/all idle':>15}")
        rounds = []
        for seed in range(asked.seeds):
            scene = drawn_scene(week, seed, asked.demand)
            rounds.append({rule: play(scene, rule) for rule in RULES})
        for rule in RULES:
            of = [one[rule] for one in rounds]
            kept = median(one[rule].kept / one["all idle"].kept for one in rounds)
            print(
                f"{rule:14}{median(one.evicted for one in of):9.0f}"
                f"{median(1000 * one.late / one.grown for one in of):9.1f}"
                f"{median(1000 * one.late_in_ramp / one.grown for one in of):9.1f}"
                f"{median(one.kept for one in of):11.0f}{median(one.lost for one in of):9.0f}{kept:15.3f}"
            )
        for rule in RULES[1:]:
            ratio = [one[rule].evicted / max(one["all idle"].evicted, 1) for one in rounds]
            print(f"{rule} / all idle, evicted: {', '.join(f'{one:.2f}' for one in ratio)}")
        written[name] = [{rule: one[rule].figures() for rule in RULES} for one in rounds]
    if asked.json is not None:
        asked.json.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
