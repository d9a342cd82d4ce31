"""How limits held pods back on a day, by half hour: throttled CFS periods, and memory at OOM kills.

    asked for all pods       the share of throttled periods; containers that were killed (hardly ever any)
    only if some were killed memory of the containers of these pods, and their limits

Nothing is needed of it: what is absent is unknown, and a remark says so. Recording rules do not keep these counters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from trainer.prometheus.day_tables import Remark, limit_hits_table
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.query_times import DayGrid
from trainer.prometheus.reader import DayReader, Question
from trainer.prometheus.shape import CONTAINERS, PODS

SLOT_SECONDS: Final = 1800
"""A half hour of the forecast. Where `prometheus.step` is finer, as it should be, six times fewer samples are asked."""

_BY: Final = "max by (namespace, pod, container)"
_LISTED: Final = 'container!="",' + PODS


def _periods(kind: str) -> str:
    return f"sum by (namespace, pod) ({_BY} (rate(container_cpu_cfs_{kind}periods_total{{{CONTAINERS}}}[{{window}}])))"


THROTTLED_PERIODS: Final = f"{_periods('throttled_')} / ({_periods('')} > 0)"
"""By (namespace, pod), 0..1. A busy container has ten periods a second, an idle one hardly any, and no limit none."""

# cAdvisor's own counter ends with the container that is killed, and mostly says nothing. kube-state-metrics knows the
# reason of the last end, and that the container has begun anew since. The reason counts as it is at the end of the half
# hour: one from before may be of an older kill. Two minutes more than the half hour, so that a step between its last
# scrape and the next one is seen; such a kill may be found in both half hours.
_GROWN: Final = "32m"
KILLED: Final = (
    f"({_BY} (increase(container_oom_events_total{{{CONTAINERS}}}[{_GROWN}])) > 0) or "
    f"({_BY} (increase(kube_pod_container_status_restarts_total{{{_LISTED}}}[{_GROWN}])) > 0 and on (namespace, pod, "
    f'container) {_BY} (kube_pod_container_status_last_terminated_reason{{reason="OOMKilled",{_LISTED}}}) == 1)'
)
"""By (namespace, pod, container), more than 0 where a container was OOM-killed in the half hour."""

_USED: Final = f'{_BY} (max_over_time(container_memory_working_set_bytes{{{CONTAINERS},pod=~"{{pods}}"}}[{{window}}]))'
_NAMED: Final = f'{_LISTED},pod=~"{{pods}}"'
_LIMIT: Final = (
    f'{_BY} (last_over_time(kube_pod_container_resource_limits{{resource="memory",{_NAMED}}}[{{window}}]) or '
    f"last_over_time(kube_pod_container_resource_limits_memory_bytes{{{_NAMED}}}[{{window}}]))"
)
_PODS_AT_ONCE: Final = 200
"""Names in one regular expression: some 10 kB of a query, which is sent as a form."""

_NEAR_LIMIT: Final = 0.5
"""Share of its limit that a container was seen to use, from which on the limit is what it was killed at. Scrapes miss
the last seconds of a leak. A container far below was killed because its node had no more memory."""

_THERE: Final = (
    'group by (__name__) ({__name__=~"container_cpu_cfs_periods_total|container_oom_events_total|'
    'kube_pod_container_status_restarts_total",namespace=~"{namespaces}"})'
)


@dataclass(frozen=True, slots=True)
class LimitHitsRead:
    """What was read.

    grid      : of half hours
    throttled : share of throttled periods by pod
    oom_bytes : memory of pods at OOM kills by (namespace, pod, tick); 0 = at an unknown level
    """

    grid: DayGrid
    throttled: Sequence[Matrix]
    oom_bytes: Mapping[tuple[str, str, int], float]
    remarks: tuple[Remark, ...] = ()

    def table(self, pods: PodsOfDay) -> pa.Table:
        """As it is stored; pods that kube-state-metrics does not list are left out."""
        row = {pod: number for number, pod in enumerate(pods.pods)}
        values = np.full((len(row), self.grid.n_ticks, 2), np.nan, dtype=np.float32)
        for part in self.throttled:
            rows = np.array([row.get(_container(labels)[:2], -1) for labels in part.labels], dtype=np.int64)
            at = rows[part.series]
            good = (at >= 0) & (part.tick >= 0) & (part.tick < self.grid.n_ticks) & (part.values >= 0)
            # Two scrapes of one cgroup are of different moments: a little more than all may seem to be throttled.
            np.fmax.at(values[:, :, 0], (at[good], part.tick[good]), np.minimum(part.values[good], 1.0))
        for (namespace, pod, tick), level in self.oom_bytes.items():
            if (namespace, pod) in row and 0 <= tick < self.grid.n_ticks:
                values[row[namespace, pod], tick, 1] = level
        return limit_hits_table(self.grid, pods, values)


def read_limit_hits(reader: DayReader) -> LimitHitsRead:
    """Ask in the manner of the other queries: in pieces by namespace, halved where the server finds them too large."""
    grid = replace(reader.grid, step_seconds=SLOT_SECONDS, n_ticks=reader.grid.seconds // SLOT_SECONDS)
    if not grid.n_ticks:
        return LimitHitsRead(grid, (), {})
    slots = replace(reader, grid=grid)
    last = grid.n_ticks - 1
    questions = [Question("throttled", THROTTLED_PERIODS, 0, last), Question("oom_killed", KILLED, 0, last)]
    throttled, killed = slots.ask(questions, lambda done, total: None)
    kills = {(*_container(labels), tick) for labels, tick, value in _samples(killed) if value > 0}
    levels = dict(_levels(slots, kills))
    has_periods = any(part.labels for part in throttled)
    return LimitHitsRead(grid, throttled, levels, () if has_periods and kills else tuple(_absent(slots, has_periods)))


def _levels(
    slots: DayReader, kills: Collection[tuple[str, str, str, int]]
) -> Iterator[tuple[tuple[str, str, int], float]]:
    """Memory of each pod at its kills: of the containers killed their limit, if they were near it; 0 = unknown."""
    names = sorted({pod for _, pod, _, _ in kills})
    used: dict[tuple[str, str, str, int], float] = {}
    limit: dict[tuple[str, str, str, int], float] = {}
    for first in range(0, len(names), _PODS_AT_ONCE):
        pods = "|".join(map(_escaped, names[first : first + _PODS_AT_ONCE]))
        templates = [("oom_used", _USED), ("oom_limit", _LIMIT)]
        # Containers, so more series than pods: still few beside all pods, which size the pieces.
        questions = [Question(n, t.replace("{pods}", pods), 0, slots.grid.n_ticks - 1) for n, t in templates]
        for into, parts in zip((used, limit), slots.ask(questions, lambda done, total: None), strict=True):
            for labels, tick, value in _samples(parts):
                if value > 0:
                    into[(*_container(labels), tick)] = value
    total: dict[tuple[str, str, int], float] = {(namespace, pod, tick): 0.0 for namespace, pod, _, tick in kills}
    for key, value in used.items():
        namespace, pod, _, tick = key
        if (namespace, pod, tick) in total:
            most = limit.get(key, 0.0) if key in kills else 0.0
            total[namespace, pod, tick] += max(value, most) if value >= _NEAR_LIMIT * most else value
    yield from total.items()


def _absent(slots: DayReader, has_periods: bool) -> Iterator[Remark]:
    """What the server does not have, and what that means."""
    parts = slots.facts("limit hits", _THERE)
    there = {labels.get("__name__", "") for part in parts for labels in part.labels}
    if not has_periods and "container_cpu_cfs_periods_total" not in there:
        yield Remark(
            "throttling",
            "container_cpu_cfs_periods_total is not there: no container has a CPU limit, or the scrape drops it, and "
            "demand above CPU limits stays hidden",
            wrong=False,
        )
    if not there - {"container_cpu_cfs_periods_total"}:
        yield Remark(
            "OOM kills",
            "neither kube_pod_container_status_restarts_total nor container_oom_events_total is there: OOM kills stay "
            "unseen",
            wrong=False,
        )


def _samples(parts: Sequence[Matrix]) -> Iterator[tuple[Mapping[str, str], int, float]]:
    for part in parts:
        for series, tick, value in zip(part.series.tolist(), part.tick.tolist(), part.values.tolist(), strict=True):
            if np.isfinite(value):
                yield part.labels[series], tick, value


def _container(labels: Mapping[str, str]) -> tuple[str, str, str]:
    return labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", "")


def _escaped(name: str) -> str:
    """A name in a regular expression in a PromQL string, where a backslash is written twice."""
    return re.escape(name).replace("\\", "\\\\").replace("\\\\-", "-")
