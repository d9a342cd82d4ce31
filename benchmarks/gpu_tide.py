"""A week of inference and training on the same GPUs: what training gets done, and whether inference ever lacks GPUs.

Inference demand is that of gpu_tide_week.py: services drawn from the bundled sample, 1 to 4 GPUs for each replica, a
new number of replicas every half hour. The cluster has a quarter more GPUs than inference ever needed in the two weeks
before. Five elastic trainings could use all of them, a sixth is inelastic; each takes 5 to 20 minutes to write its
checkpoint, in which its GPUs are held and nothing is learned, and 5 minutes to begin again with each replica. Played in
steps of five minutes, GPUs as one pool:

    fixed, past peak    training has what was never needed in the two weeks before
    fixed, best         the largest fixed share with a shortfall in at most 0.5 % of the week; known only afterwards
    reactive            training has whatever is free, and drains once inference waits; grows again after two hours
    reactive, 15 %      the same, but leaves 15 % more than inference has now; 20 % likewise
    tide                the product's own demand and plan, with what a model of each midnight before knew
    true future         the same plan without margins, with what really came; nobody can know that

    GPU hours     of training, without draining and beginning
    of the rest   these as a share of what inference did not need
    shortfall     minutes of the week in which inference had fewer GPUs than it needed, and the share of the week
    lacking       GPU hours that inference lacked
    moves         of trainings, a day

Medians over the seeds (the shortfall: and the worst). Run as `python -m benchmarks.gpu_tide [--seeds N] [--json FILE]`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from base.arrays import Floats
from benchmarks.gpu_tide_week import DAYS, TideWeek, tide_week
from benchmarks.harness import command_line
from forecast.calendar import SLOTS_PER_DAY
from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import ServiceGpus, TideDemand, demand_ahead
from profiles.gpu.tide.tide_plan import TideMove, Training, after_move, decide
from testing.constants import with_constants

RULES: Final = (
    "fixed, past peak",
    "fixed, best",
    "reactive",
    "reactive, 15 %",
    "reactive, 20 %",
    "tide",
    "true future",
)
_STEP: Final = 300.0
_STEPS_PER_SLOT: Final = 6
_RESTORE: Final = 300.0
_ALLOWED: Final = 0.005
_N_SERVICES: Final = 16
_SPARE: Final = 1.25


@dataclass(frozen=True, slots=True)
class Played:
    """See the top; shortfall in minutes."""

    gpu_hours: float
    of_the_rest: float
    shortfall: float
    lacking: float
    moves: float


@dataclass(frozen=True, slots=True)
class Scene:
    """
    capacity  : GPUs
    gpus      : (n_services,) of a replica
    services  : positions in the week
    trainings : as the tide sees them, with nothing running
    """

    week: TideWeek
    capacity: float
    gpus: Floats
    services: Sequence[int]
    trainings: tuple[Training, ...]

    @property
    def needed(self) -> Floats:
        """(n_slots,) GPUs that inference really needs."""
        return np.asarray(self.gpus @ self.week.replicas[list(self.services)])

    @property
    def past_peak(self) -> float:
        """Of the weeks before."""
        return float((self.gpus @ self.week.before[list(self.services)]).max())


def drawn_scene(week: TideWeek, seed: int, options: TideOptions) -> Scene:
    """Services, sizes and trainings by lot."""
    rng = np.random.default_rng(seed)
    services = sorted(rng.choice(len(week.services), size=_N_SERVICES, replace=False).tolist())
    gpus = rng.choice([1.0, 2.0, 4.0], size=_N_SERVICES, p=[0.6, 0.3, 0.1])
    peak = float((gpus @ week.before[services]).max())
    capacity = float(np.ceil(_SPARE * peak))
    trainings = []
    for number, of_one in enumerate((1.0, 2.0, 2.0, 4.0, 8.0)):
        grace = float(rng.choice([300.0, 600.0, 1200.0]))
        trainings.append(
            Training(
                key=f"lab/StatefulSet/train-{number}",
                pool=0,
                gpus=of_one,
                replicas=0,
                least=int(rng.integers(0, 2)),
                most=int(capacity / 3 / of_one),
                lead=options.lead(grace),
                taken=True,
            )
        )
    trainings.append(
        Training(
            "lab/Job/whole",
            0,
            8.0,
            replicas=0,
            least=1,
            most=1,
            lead=600.0 + options.notice + options.every,
            taken=True,
        )
    )
    return Scene(week, capacity, gpus, services, tuple(trainings))


@dataclass(slots=True)
class _Cluster:
    """What is going on. Draining and beginning: until when, GPUs, and whose they are."""

    scene: Scene
    options: TideOptions
    trainings: dict[str, Training] = field(default_factory=dict)
    draining: list[tuple[float, float, str]] = field(default_factory=list)
    beginning: list[tuple[float, float]] = field(default_factory=list)
    worked: float = 0.0  # GPU seconds
    short_steps: int = 0
    lacked: float = 0.0
    moves: int = 0

    def held(self, now: float) -> float:
        """GPUs of training."""
        self.draining = [one for one in self.draining if one[0] > now]
        self.beginning = [one for one in self.beginning if one[0] > now]
        running = sum(one.replicas * one.gpus for one in self.trainings.values())
        return running + sum(gpus for _, gpus, _ in self.draining)

    def seen(self, now: float) -> list[Training]:
        """The trainings as they are, with what they still hold."""
        self.held(now)
        still = dict.fromkeys(self.trainings, 0.0)
        for _, gpus, key in self.draining:
            still[key] += gpus
        return [replace(one, draining=still[key]) for key, one in self.trainings.items()]

    def carry_out(self, moves: Sequence[TideMove], now: float) -> None:
        for move in moves:
            one = self.trainings[move.training.key]
            self.moves += 1
            if move.after < move.before:
                drain = one.lead - self.options.notice - self.options.every
                self.draining.append((now + drain, move.gpus, one.key))
            else:
                self.beginning.append((now + _RESTORE, move.gpus))
            self.trainings[move.training.key] = after_move(move)

    def pass_step(self, now: float, needed: float) -> None:
        held = self.held(now)
        lacking = max(0.0, needed + held - self.scene.capacity)
        self.short_steps += lacking > 1e-6
        self.lacked += lacking * _STEP
        running = sum(one.replicas * one.gpus for one in self.trainings.values())
        idle = sum(gpus for _, gpus in self.beginning)
        # What training was told to have and inference still has does not work.
        self.worked += max(0.0, min(running, self.scene.capacity - needed) - idle) * _STEP


Decides = Callable[[_Cluster, int, float, float], list[TideMove]]
"""The cluster, the half hour, now and what inference needs now -> moves."""


def play(scene: Scene, rule: str, options: TideOptions) -> Played:
    """The whole week."""
    needed = scene.needed
    rest = float((np.maximum(scene.capacity - needed, 0.0)).sum() * 1800.0)
    if rule.startswith("fixed"):
        return _fixed(scene, rule, needed, rest)
    decides: dict[str, Decides] = {
        "reactive": partial(_reactive, spare=0.0),
        "reactive, 15 %": partial(_reactive, spare=0.15),
        "reactive, 20 %": partial(_reactive, spare=0.2),
        "tide": _tide,
        "true future": _oracle,
    }
    cluster = _Cluster(scene, options, {one.key: one for one in scene.trainings})
    for step in range(len(needed) * _STEPS_PER_SLOT):
        slot, now = step // _STEPS_PER_SLOT, float(scene.week.starts[0]) + step * _STEP
        cluster.carry_out(decides[rule](cluster, slot, now, float(needed[slot])), now)
        cluster.pass_step(now, float(needed[slot]))
    return Played(
        gpu_hours=cluster.worked / 3600,
        of_the_rest=cluster.worked / rest,
        shortfall=cluster.short_steps * _STEP / 60,
        lacking=cluster.lacked / 3600,
        moves=cluster.moves / DAYS,
    )


def _fixed(scene: Scene, rule: str, needed: Floats, rest: float) -> Played:
    share = scene.capacity - scene.past_peak
    if rule == "fixed, best":
        allowed = int(_ALLOWED * len(needed))
        share = scene.capacity - float(np.sort(needed)[::-1][allowed])
    lacking = np.maximum(needed + share - scene.capacity, 0.0)
    hours = share * len(needed) / 2
    return Played(hours, hours * 3600 / rest, float((lacking > 0).sum() * 30), float(lacking.sum() / 2), 0.0)


def _demand(cluster: _Cluster, slot: int, now: float, ahead: Floats, options: TideOptions) -> TideDemand:
    """ahead: (n_services, n_slots) replicas from this half hour on."""
    scene = cluster.scene
    starts = scene.week.starts[0] + 1800.0 * (slot + np.arange(ahead.shape[1] + 1))
    one = np.ones(1)
    uses = [
        ServiceGpus(
            key=scene.week.services[service],
            held=one * scene.gpus[at] * scene.week.replicas[service, slot],
            waiting=np.zeros(1),
            share=one,
            expected=scene.gpus[at] * ahead[at],
        )
        for at, service in enumerate(scene.services)
    ]
    return demand_ahead(uses, np.array([scene.capacity]), starts, now, options)


def _tide(cluster: _Cluster, slot: int, now: float, needed: float) -> list[TideMove]:
    day, of_day = divmod(slot, SLOTS_PER_DAY)
    ahead = cluster.scene.week.forecast[list(cluster.scene.services), day, of_day : of_day + SLOTS_PER_DAY]
    demand = _demand(cluster, slot, now, ahead, cluster.options)
    return decide(cluster.seen(now), demand, now, cluster.options, UTC)[0]


def _oracle(cluster: _Cluster, slot: int, now: float, needed: float) -> list[TideMove]:
    exact = cluster.scene.needed[slot : slot + SLOTS_PER_DAY][None, :]
    demand = _known(cluster, float(cluster.scene.week.starts[slot]), exact)
    return decide(cluster.seen(now), demand, now, cluster.options, UTC)[0]


def _reactive(cluster: _Cluster, slot: int, now: float, needed: float, *, spare: float) -> list[TideMove]:
    """Only what is needed now counts: demand is taken to stay as it is."""
    still = np.full((1, SLOTS_PER_DAY), np.ceil(needed * (1 + spare)))
    demand = _known(cluster, float(cluster.scene.week.starts[slot]), still)
    options = cluster.options.replace(moves_per_job=10**6, moves_per_day=10**9)
    return decide(cluster.seen(now), demand, now, options, UTC)[0]


def _known(cluster: _Cluster, first: float, need: Floats) -> TideDemand:
    """need: (1, n_slots) GPUs, taken as it is."""
    nothing = np.zeros(1)
    return TideDemand(
        starts=first + 1800.0 * np.arange(need.shape[1] + 1),
        capacity=np.array([cluster.scene.capacity]),
        need=need,
        expected=need,
        waiting=nothing,
        waits=("",),
        services=("all",),
        by_service=need[None],
        unmoved=nothing,
        forecast=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table of medians over the seeds."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--history", type=Path, default=Path("data/sample"))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    began, options = time.perf_counter(), with_constants(TideOptions(), every=_STEP)
    week = tide_week(args.history)
    scenes = [drawn_scene(week, seed, options) for seed in range(args.seeds)]
    runs = [{rule: play(scene, rule, options) for rule in RULES} for scene in scenes]
    print(
        f"{'':18}{'GPU hours':>11}{'of the rest':>13}{'shortfall':>12}{'of the week':>12}{'worst':>9}{'lacking':>9}"
        f"{'moves':>7}"
    )
    for rule in RULES:
        m = {name: median(asdict(run[rule])[name] for run in runs) for name in asdict(runs[0][rule])}
        minutes = DAYS * 24 * 60
        worst = max(run[rule].shortfall for run in runs)
        print(
            f"{rule:18}{m['gpu_hours']:11.0f}{m['of_the_rest']:13.1%}{m['shortfall']:8.0f} min"
            f"{m['shortfall'] / minutes:12.2%}{worst / minutes:9.2%}{m['lacking']:8.1f}h{m['moves']:7.1f}"
        )
    sizes = [scene.capacity for scene in scenes]
    print(f"{args.seeds} seeds, {min(sizes):.0f} to {max(sizes):.0f} GPUs, {time.perf_counter() - began:.0f} s")
    if args.json:
        args.json.write_text(json.dumps([{rule: asdict(of) for rule, of in run.items()} for run in runs], indent=2))


if __name__ == "__main__":
    main()
