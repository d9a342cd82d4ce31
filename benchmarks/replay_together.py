"""The pods of a release placed one by one and placed together, in the replays that `benchmarks.replay` plays.

last_week and oracle are placed together as well: so it is seen what comes of the search and what of the forecast. In a
replay all pods come at once, onto empty nodes; `the last 256`, 128 and 64 are releases onto nodes that are in use. All
figures are of the same pods in the same order, but for `largest first`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.predicted.placed_together import FilledNodes, Release, rearranged
from cluster.predicted.unknown_capacity import limited
from scorer.replay.curves import CurveForecast, JobPods, job_pods, true_runs
from scorer.replay.preparation import named_rule
from scorer.replay.recording import Recording
from scorer.replay.replay import Replay
from scorer.replay.replay_figures import RuleFigures, figures_of, shares
from scorer.replay.replay_rules import ByCurves, ReplayedPod, ReplayRule, ReplayState
from scorer.replay.running_cluster import RunningCluster, play

ONE_BY_ONE: Final = ("last_week", "forecast", "oracle")
SMALL_RELEASES: Final = (256, 128, 64)
LARGEST_FIRST: Final = "forecast, largest first"

SMALLEST_GAP: Final = 0.001
"""Of the hot share between last week and the true future; a part of less is a part of noise."""


class ByCurvesTogether(ByCurves):
    """Places by curves one after the other; in a TogetherCluster, pods exchange nodes after each batch."""

    def __init__(
        self,
        forecast: CurveForecast,
        capacity: Floats,
        *,
        jobs: JobPods | None = None,
        most: int = sys.maxsize,
        batch: int = sys.maxsize,
        spreads: bool = False,
    ) -> None:
        """
        most    : pods that are looked at, those placed last; the others were there before the release
        batch   : pods after which they are looked at, and again after as many more
        spreads : pods of a service do not come to crowd on a node, see FilledNodes
        """
        super().__init__(forecast, capacity, jobs=jobs)
        self.most, self.batch, self._spreads = most, batch, spreads

    def rearrange(self, pods: Sequence[ReplayedPod], nodes: Ints, state: ReplayState) -> Ints:
        """Where the pods go instead: (n_pods,). They are on `nodes` now, in `state` and by `added`."""
        profiles, profile = np.unique([self._profile(pod.service, self._end(pod)) for pod in pods], return_inverse=True)
        release = Release(
            usage=np.stack([self._load.usage_of(one) for one in profiles.tolist()]),
            profile=profile,
            requests=np.stack([pod.requests for pod in pods]),
            node=nodes,
        )
        every = np.arange(self._load.n_nodes)
        filled = FilledNodes(
            share=self._load.share(every),
            per_capacity=self._load.per_capacity(every),
            free=state.allocatable - state.requested,
            point_weights=self._load.point_weights,
            alike=self._load.pods_of(profiles.tolist())[every] if self._spreads else None,
        )
        return rearranged(release, filled)


class TogetherCluster(RunningCluster):
    """Lets a rule look at its pods once more when all of a batch have nodes."""

    def __init__(self, recording: Recording, rule: ReplayRule) -> None:
        super().__init__(recording, rule)
        assert isinstance(rule, ByCurvesTogether)
        self._together = rule

    def place(self, pods: Ints, slot: int, on_placed: Callable[[], None] = lambda: None) -> None:
        placed: list[ReplayedPod] = []

        def noted() -> None:
            on_placed()
            placed.append(next(reversed(self._running.values())))
            if len(placed) == self._together.batch:
                self._rearrange(placed)

        super().place(pods, slot, noted)
        if placed:
            self._rearrange(placed)

    def _rearrange(self, placed: list[ReplayedPod]) -> None:
        """Seat pods that have just been placed where the rule wants them once it has seen all of them."""
        pods = placed[-self._together.most :]
        placed.clear()
        nodes = self.node[[pod.index for pod in pods]]
        for pod, before, node in zip(
            pods, nodes.tolist(), self._together.rearrange(pods, nodes, self.state), strict=True
        ):
            if node != before:
                self.state.live_usage[before] -= pod.live
                self.take(pod.index)
                self._add(pod, int(node))


@dataclass(frozen=True, slots=True)
class Placed:
    """What one way of placing led to in one replay, and what it took."""

    figures: RuleFigures
    seconds_per_pod: float


def together(rule: str) -> str:
    """The name of a rule with its pods placed together."""
    return f"{rule}, together"


def last_together(pods: int) -> str:
    """The name of the forecast with so many of the last pods placed together."""
    return f"forecast, the last {pods} together"


NAMES: Final = (
    *ONE_BY_ONE,
    *map(together, ONE_BY_ONE),
    *map(last_together, SMALL_RELEASES),
    LARGEST_FIRST,
    together(LARGEST_FIRST),
)


def placed_together(one: Replay) -> dict[str, Placed]:
    """All of NAMES on the pods of a replay."""
    forecast = one.forecasts["forecast"]
    ways = {
        **{rule: _play(one, named_rule(rule, one.recording, one.forecasts, one.seed)) for rule in ONE_BY_ONE},
        **{together(rule): _play(one, _together(one, rule)) for rule in ONE_BY_ONE},
        **{last_together(pods): _play(one, _together(one, "forecast", pods)) for pods in SMALL_RELEASES},
    }
    by_size = largest_first(one.recording, forecast)
    ways[LARGEST_FIRST] = _play(one, named_rule("forecast", one.recording, one.forecasts, one.seed), by_size)
    ways[together(LARGEST_FIRST)] = _play(one, _together(one, "forecast"), by_size)
    return ways


def _together(one: Replay, rule: str, most: int = sys.maxsize) -> ReplayRule:
    recording, forecast = one.recording, one.forecasts[rule]
    jobs = true_runs(recording) if rule == "oracle" else job_pods(recording, forecast.run_seconds)
    return ByCurvesTogether(forecast, recording.capacity, jobs=jobs, most=most)


def _play(one: Replay, rule: ReplayRule, order: Callable[[Ints], Ints] = lambda pods: pods) -> Placed:
    recording = one.recording
    began = time.perf_counter()
    running = TogetherCluster if isinstance(rule, ByCurvesTogether) else RunningCluster
    playback = play(recording, rule, seed=one.seed, order=order, running=running)
    seconds = time.perf_counter() - began
    share = shares(playback.node_load(recording), recording.capacity)
    figures = figures_of(share, playback.unplaced, {}, recording.hot, recording.assumed)
    return Placed(figures, seconds / len(recording.service))


def largest_first(recording: Recording, forecast: CurveForecast) -> Callable[[Ints], Ints]:
    """By the pods' predicted peak as a share of what the cluster has; the advisor once placed in this order."""
    known = limited(recording.known_capacity)
    total = np.where(known, recording.known_capacity, 0.0).sum(axis=0)
    share = forecast.mean.max(axis=2) / np.where(total > 0, total, np.inf)  # (n_services, n_resources)
    peak = share.max(axis=1)[recording.service]
    return lambda pods: pods[np.argsort(-peak[pods], kind="stable")]


def summary(placed: Sequence[Mapping[str, Placed]], interval: Callable[[Floats], dict[str, float]]) -> dict[str, Any]:
    """Means over the seeds, and how each way stands against last week placed one by one.

    interval : of paired differences, (n_seeds, n_days)
    """

    def hot(name: str) -> Floats:
        return np.array([one[name].figures.daily_hot_share for one in placed])  # (n_seeds, n_days)

    rival, gap = hot("last_week"), float((hot("last_week") - hot("oracle")).mean())
    result = {}
    for name in NAMES:
        behind = hot(name) - rival
        result[name] = {
            "hot_share": float(hot(name).mean()),
            "peak_cv_cpu": float(np.mean([one[name].figures.peak_cv["cpu"] for one in placed])),
            "minus_last_week": interval(behind),
            "worst_seed_behind_last_week": float(behind.mean(axis=1).max()),
            "gap_to_true_future_closed": float((rival - hot(name)).mean()) / gap if gap >= SMALLEST_GAP else None,
            "unplaced": float(np.mean([one[name].figures.unplaced for one in placed])),
            "ms_per_pod": 1e3 * float(np.median([one[name].seconds_per_pod for one in placed])),
        }
    return result


def print_summary(result: Mapping[str, Mapping[str, Any]]) -> None:
    """One line for each way."""
    print(
        f"{'placed':<36}{'hot':>8}{'CPU CV':>8}{'ms/pod':>8}{'closed':>8}{'worst seed':>12}   - last_week, hot (95 %)"
    )
    for name, one in result.items():
        closed, d = one["gap_to_true_future_closed"], one["minus_last_week"]
        print(
            f"{name:<36}{one['hot_share']:>8.3%}{one['peak_cv_cpu']:>8.3f}{one['ms_per_pod']:>8.2f}"
            f"{'-' if closed is None else f'{closed:.0%}':>8}{one['worst_seed_behind_last_week']:>+12.3%}"
            f"   {d['mean']:+.3%} ({d['low']:+.3%} to {d['high']:+.3%})"
        )
