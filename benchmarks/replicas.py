"""Time over target at the ramps: a reactive HorizontalPodAutoscaler, and the same one that knows the load ahead.

    python -m benchmarks.replicas [--traces DIR] [--only NAME] [--seeds N] [--days N] [--lead SECONDS] [--json FILE]

Services of real curves are scaled by the HPA controller's rule (benchmarks/hpa.py) over the last days: by their CPU
alone (reactive), by their CPU or the load expected ahead, whichever wants more (forecast; autoscaling/replicas), and by
the true future. Two have no metric of the load ahead: `minimum` has its minReplicas raised by the forecast
(autoscaling/replicas/raising.py), `static` has that of the daily peak all the time. One more reactive HPA has its
target lowered until it takes as many replica-hours as the forecast: what the same money buys without one.

The load of the sample goes evenly from half hour to half hour; ASD (the metrics that follow the load) and Bitbrains
have their five-minute samples. Each night has a model fitted on the days before. The seed chooses how many pods each
service has at its peak (4 to 24) and how long they take to start (60 to 180 s).

A ramp is a half hour in which a service's load is at least 5 % of the day's peak above the half hour before. "Over"
is a load of more than 1.1 times the target for each ready pod, where the controller itself begins to act; "above" is
any load above the target. The aims: 80 % less time over target at ramps, for at most 5 % more replica-hours.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from autoscaling.autoscale_settings import ReplicaOptions
from autoscaling.replicas.loads_ahead import expected_load
from base.arrays import AnyFloats, Bools, Floats
from benchmarks.clusters import Trace, build_plain
from benchmarks.clusters.traces import Curves, read_asd, read_bitbrains_cpu
from benchmarks.harness import command_line, finish, outcome
from benchmarks.hpa import STEP_SECONDS, TOLERANCE, Foreseen, Played, play_hpa
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.fit import fit
from forecast.history import History
from forecast.resources import CPU
from trainer.history.files import HistoryFiles

SAMPLE: Final = Path(__file__).parents[1] / "data" / "sample"
LESS, MORE = 0.80, 1.05
RISE: Final = 0.05
FINE_MINUTES: Final = 5
LAG_STEPS: Final = (1, 2, 3)
"""What the metrics API shows is the mean of these steps back: the kubelet's reading, and metrics-server's."""
WINDOW_STEPS: Final = 8
"""What Prometheus shows is the mean over two minutes."""
LOADS_OF_ASD: Final = tuple(f"m{number}" for number in range(10, 19))
SLOT_SECONDS: Final = SLOT_MINUTES * 60.0


@dataclass(frozen=True, slots=True)
class Services:
    """Load of services over the days that are played, in cores or scaled units.

    truth    : (n_services, n) means of steps of `seconds`
    by_slot, forecast : (n_services, n_days * 48) half-hour means, as they came and as each night's model expected them
    """

    truth: Floats
    seconds: float
    by_slot: Floats
    forecast: Floats


@dataclass(frozen=True, slots=True)
class Outcome:
    """replica_hours; over, above: share of the time of all services at ramps; always_over: at any time; most_ahead: of
    Played."""

    replica_hours: float
    over: float
    above: float
    always_over: float
    most_ahead: float


def services_of(history: History, days: int, fine: Curves | None, ends: tuple[str, ...] = ("",)) -> Services:
    """Read what was used, and forecast each day from the days before it. ends: of the names of services that count"""
    first = history.n_days - days
    total = history.usage_per_pod[:, CPU].astype(np.float64) * history.replicas
    by_slot = np.nan_to_num(total[:, first:]).reshape(len(total), -1)
    forecast = np.concatenate([_day_ahead(history, day) for day in range(first, history.n_days)], axis=1)
    busy: Bools = np.array([service.name.endswith(ends) for service in history.services])
    busy &= np.percentile(by_slot, 99, axis=1) > 0
    truth, seconds = by_slot, SLOT_SECONDS
    if fine is not None:
        row_of = {entity.replace("/", "-"): row for row, entity in enumerate(fine.entities)}
        rows = np.array([row_of[service.name] for service in history.services])
        begin = history.calendar.midnight(history.days[first])
        skip = round((begin.timestamp() - fine.start.timestamp()) / (60 * FINE_MINUTES))
        n_steps = days * 24 * 60 // FINE_MINUTES
        truth, seconds = _filled(fine.values["cpu"][rows, skip : skip + n_steps]), FINE_MINUTES * 60.0
        busy &= np.isfinite(truth).all(axis=1)
    return Services(truth[busy], seconds, by_slot[busy], forecast[busy])


def _day_ahead(history: History, day: int) -> Floats:
    model = fit(history.before(day))
    expected = model.usage((history.days[day],))[:, CPU, 0] * model.replicas((history.days[day],))[:, 0]
    row_of = {service: row for row, service in enumerate(model.services)}
    out = np.zeros((len(history.services), SLOTS_PER_DAY))
    known = [i for i, service in enumerate(history.services) if service in row_of]
    out[known] = np.nan_to_num(expected)[[row_of[history.services[i]] for i in known]]
    return out


def _filled(values: AnyFloats) -> Floats:
    """A gap goes evenly from what was before it to what was after; a row without anything stays NaN."""
    out = np.asarray(values, dtype=np.float64).copy()
    steps = np.arange(out.shape[1])
    for row in out:
        known = np.isfinite(row)
        if known.any():
            row[~known] = np.interp(steps[~known], steps[known], row[known])
    return out


def evenly(values: Floats, seconds: float, n_steps: int) -> Floats:
    """Means of steps of `seconds` as a course in the controller's steps: even from middle to middle."""
    position = np.clip(np.arange(n_steps) * STEP_SECONDS / seconds - 0.5, 0, values.shape[1] - 1)
    before = np.minimum(position.astype(np.int64), values.shape[1] - 2)
    part = position - before
    return np.asarray(values[:, before] * (1 - part) + values[:, before + 1] * part)


def before(values: Floats, steps: int) -> Floats:
    """The same so many steps later: what was known then."""
    return np.concatenate([np.repeat(values[:, :1], steps, axis=1), values[:, : values.shape[1] - steps]], axis=1)


def highest_ahead(values: Floats, steps: int) -> Floats:
    """The highest value from each step on, over so many steps."""
    padded = np.concatenate([values, np.repeat(values[:, -1:], steps, axis=1)], axis=1)
    return np.asarray(sliding_window_view(padded, steps + 1, axis=1).max(axis=-1))


def play(services: Services, lead: float, ceiling: float, seed: int) -> Mapping[str, Outcome]:
    """Play all autoscalers on the same load; returns what became of each, by its name."""
    rng = np.random.default_rng(seed)
    n_services, n_slots = services.by_slot.shape
    n_steps = round(n_slots * SLOT_SECONDS / STEP_SECONDS)
    load = evenly(services.truth, services.seconds, n_steps)
    curve = evenly(services.forecast, SLOT_SECONDS, n_steps)
    at_peak = np.exp(rng.uniform(np.log(4), np.log(24), n_services))
    target = np.percentile(services.by_slot, 99.5, axis=1) / at_peak
    startup = np.round(rng.uniform(60, 180, n_services) / STEP_SECONDS).astype(np.int64)
    measured = np.mean([before(load, lag) for lag in LAG_STEPS], axis=0)
    used = np.mean([before(load, lag) for lag in range(WINDOW_STEPS)], axis=0)
    steps = round(lead / STEP_SECONDS)
    ahead = expected_load(used, before(curve, WINDOW_STEPS // 2), highest_ahead(curve, steps), ceiling=ceiling)
    by_day = services.by_slot.reshape(n_services, -1, SLOTS_PER_DAY)
    rise = np.diff(services.by_slot, axis=1, prepend=services.by_slot[:, :1])
    is_ramp = rise >= RISE * np.maximum(np.repeat(by_day.max(axis=2), SLOTS_PER_DAY, axis=1), 1e-12)
    ramp = np.repeat(is_ramp, n_steps // n_slots, axis=1)

    def judge(played: Played) -> Outcome:
        filled = load / (played.ready * target[:, None])
        return Outcome(
            replica_hours=float(played.replicas.sum()) * STEP_SECONDS / 3600,
            over=float((filled > 1 + TOLERANCE)[ramp].mean()),
            above=float((filled > 1)[ramp].mean()),
            always_over=float((filled > 1 + TOLERANCE).mean()),
            most_ahead=played.most_ahead,
        )

    def reactive(share: float) -> Outcome:
        return judge(play_hpa(load, measured, target * share, startup))

    found = {"reactive": reactive(1.0), "forecast": judge(play_hpa(load, measured, target, startup, external=ahead))}
    found["minimum"] = judge(play_hpa(load, measured, target, startup, foreseen=Foreseen(ahead, used)))
    peaks = np.ceil(at_peak).astype(np.int64)
    found["static"] = judge(play_hpa(load, measured, target, startup, minimum=peaks))
    # Replica-hours go as the inverse of the target, but for rounding.
    found["same_cost"] = reactive(found["reactive"].replica_hours / found["forecast"].replica_hours)
    future = highest_ahead(load, steps)
    found["oracle"] = judge(play_hpa(load, measured, target, startup, external=future))
    return found


def histories(traces: Path | None, days: int, only: str) -> Iterator[tuple[str, Services]]:
    """Yield the services of each trace by its name. only: '' = of all"""
    if only in ("", "sample"):
        yield "sample", services_of(HistoryFiles.open(SAMPLE).history(), days, None)
    if traces is None:
        print("NOT MEASURED: ASD and Bitbrains; pass --traces DIR (data/README.md)")
        return
    with tempfile.TemporaryDirectory(prefix="replicas-") as scratch:
        for name, trace, read in (("ASD", Trace.ASD, read_asd), ("Bitbrains", Trace.BITBRAINS, read_bitbrains_cpu)):
            if only not in ("", name):
                continue
            build_plain(trace, traces, Path(scratch) / trace.value)
            history = HistoryFiles.open(Path(scratch) / trace.value).history()
            ends = LOADS_OF_ASD if trace is Trace.ASD else ("",)
            yield name, services_of(history, days, read(traces, step_minutes=FINE_MINUTES), ends)


def main() -> None:
    """Print the figures; fails where an aim is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the public traces")
    parser.add_argument("--only", default="", choices=("sample", "ASD", "Bitbrains"), help="this one alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--lead", type=float, default=ReplicaOptions().lead, help="seconds ahead")
    parser.add_argument("--json", type=Path, help="write all figures here")
    asked = parser.parse_args()
    found: dict[str, list[dict[str, dict[str, float]]]] = {}
    holds = True
    for name, services in histories(asked.traces, asked.days, asked.only):
        n_services = len(services.by_slot)
        print(f"{name}: {n_services} services, {asked.days} days, {asked.lead / 60:g} minutes ahead")
        for seed in range(asked.seeds):
            played = play(services, asked.lead, ReplicaOptions().ceiling, seed)
            found.setdefault(name, []).append({rule: asdict(figures) for rule, figures in played.items()})
            holds &= print_cell(seed, played)
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    finish(holds)


def print_cell(seed: int, played: Mapping[str, Outcome]) -> bool:
    """Print one seed; whether the aims are met."""
    base, ours = played["reactive"], played["forecast"]
    for rule, one in played.items():
        cost = one.replica_hours / base.replica_hours
        print(
            f"  seed {seed}, {rule:<10} {one.replica_hours:9.0f} replica-hours ({cost:.3f}), at ramps over "
            f"{one.over:6.2%} ({_less(base.over, one.over)}), above {one.above:6.2%} ({_less(base.above, one.above)}); "
            f"over at any time {one.always_over:.2%}, ahead at most {one.most_ahead:.0%}"
        )
    less, more = 1 - ours.over / base.over, ours.replica_hours / base.replica_hours
    print(
        f"  {outcome(less >= LESS)}  {less:.1%} less time over target at ramps; "
        f"{outcome(more <= MORE)}  {more:.3f} of the replica-hours",
        flush=True,
    )
    return less >= LESS and more <= MORE


def _less(theirs: float, ours: float) -> str:
    return f"{ours / theirs - 1:+.0%}" if theirs > 0 else "none to mend"


if __name__ == "__main__":
    main()
