"""The reading of one day, step by step.

1  how many pods per namespace and nodes there are (sizes the pieces), which log sources there are
2  what recording rules recorded, and raw queries where nothing is recorded
3  which pods ran where, owners, capacities, requests: as they were that day
4  what the names of nodes mean, and which shapes besides the first there are; these are read, too
5  how limits held pods back
6  tables
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from base.progress import Progress, silent
from forecast.resources import RESOURCES
from forecast.service_key import Owner
from trainer.history.cleaning import Tally
from trainer.prometheus.day_assembly import DayRead, assemble
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.http_answer import ImpossibleAnswer
from trainer.prometheus.kubelet_log_gauge import log_of_gauge
from trainer.prometheus.limit_hits import read_limit_hits
from trainer.prometheus.log_source import LOG_METRICS, LogQueries, LogSource, log_queries
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.name_finding import find_names
from trainer.prometheus.node_names import node_facts, nodes_named
from trainer.prometheus.pod_usage_shapes import ON_HOST_NETWORK
from trainer.prometheus.pods_of_day import PodsOfDay, owners_of, pods_of_day
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.queries import UNTOLD_SIDECARS
from trainer.prometheus.query_times import Chunk, DayGrid, uncovered_ranges
from trainer.prometheus.reader import DayReader, Question
from trainer.prometheus.recording_rules import recorded_info, recorded_nodes, recorded_pods
from trainer.prometheus.samples import Samples, covered_ticks
from trainer.prometheus.shape_reading import ShapeAnswer, all_measured, looked_at, nodes_seen, pod_shapes, read_shapes

_INFO = "pod_info"
_MOST_PODS: Final = 10_000_000
"""Kubernetes is built for 150,000. A count beyond this would make us cut the day into thousands of queries."""

_FEW_NODES, _PODS_PER_NODE = 100, 5  # only to size pieces
_LOOK_FOR_LOGS_SECONDS = 6 * 3600


@dataclass(frozen=True, slots=True)
class _Read:
    """One thing to read: recorded where that exists, raw elsewhere. raw "" = only recorded."""

    name: str
    recorded: str
    raw: str
    per_pod: int


def read_day(
    connection: PrometheusConnection, options: SourceOptions, grid: DayGrid, progress: Progress = silent
) -> DayTables:
    """See PrometheusSource.read_day."""
    if grid.n_ticks == 0:
        return assemble(options, grid, DayRead.nothing(grid), Tally())
    reader = _sized(connection, options, grid)
    logs = _log_queries(reader, options)
    samples, recorded_share = _samples(reader, options, logs[0], progress)
    pods = _pods(reader, options, samples.pop(_INFO))
    ticks = looked_at(pods.life, max(1, 3600 // grid.step_seconds))
    facts = node_facts(
        *(reader.facts(f, getattr(options.templates, f)) for f in ("node_info", "node_capacity", "node_allocatable"))
    )
    speed = reader.facts("node_network_speed", options.templates.node_network_speed)
    seen = nodes_seen(reader, ticks)
    nodes = facts.names | {life.node for life in pods.lives}
    answers = [part for name, one in samples.items() if name.startswith("node_") for part in one.parts]
    names = find_names(reader, facts, nodes, seen.all | nodes_named([*answers, *speed]))
    only_beyond = all_measured(pods, [samples["pod_cpu"], samples["pod_memory"]])
    recognised = [
        *pod_shapes(reader, options.templates, ticks, only_beyond=only_beyond),
        *seen.shapes(names, options.templates, nodes or seen.all),
    ]
    more = read_shapes(reader, recognised, lambda done, total: progress("read other shapes", done, total))
    for log in logs[1:]:
        for name, template, per_pod in (("pod_log", log.pod, 1), ("node_log", log.node, 0)):
            if template:
                question = Question(name, template, 0, grid.n_ticks - 1, per_pod)
                more.setdefault(name, []).extend(map(ShapeAnswer, reader.ask([question], lambda done, total: None)))
    tally = Tally()
    gauge = None
    if logs[0].gauge:
        question = Question("pod_log", logs[0].gauge, -1, grid.n_ticks - 1, per_pod=3)
        [parts] = reader.ask([question], lambda done, total: None)
        gauge = log_of_gauge(parts, pods, grid, options.log_rotation_cap_bytes, tally)
    requests = _requests(reader.facts("pod_requests", options.templates.pod_requests))
    sidecars = sum(part.values.sum() for part in reader.facts("sidecars", UNTOLD_SIDECARS))
    hits = read_limit_hits(reader)
    read = DayRead(
        pods, samples, more, requests, facts, names, speed, recognised, int(sidecars), gauge, recorded_share, hits
    )
    return assemble(options, grid, read, tally)


def _owners(reader: DayReader, options: SourceOptions) -> dict[tuple[str, str, str], Owner]:
    return owners_of(
        _joined(reader.facts("replicaset_owner", options.templates.replicaset_owner)),
        _joined(reader.facts("job_owner", options.templates.job_owner)),
    )


def _pods(reader: DayReader, options: SourceOptions, info: Samples) -> PodsOfDay:
    """Which pods ran. The answers with all their labels are not kept."""
    running = [*info.recorded, *_only(info.raw, info.raw_ticks)]
    return pods_of_day(running, reader.grid.n_ticks, _owners(reader, options), _on_host_network(reader, running))


def _on_host_network(reader: DayReader, running: Sequence[Matrix]) -> set[tuple[str, str]]:
    """Pods on the host network, where the answer to pod_info does not say."""
    if all(labels.get("host_network") for part in running for labels in part.labels):
        return set()
    found = reader.facts("host_network", ON_HOST_NETWORK)
    return {(labels.get("namespace", ""), labels.get("pod", "")) for part in found for labels in part.labels}


def _sized(connection: PrometheusConnection, options: SourceOptions, grid: DayGrid) -> DayReader:
    """A reader that knows how large the answers will be: the most pods each namespace has at a whole hour."""
    hour = max(1, 3600 // grid.step_seconds)
    whole_hours = DayGrid(grid.day, grid.step_seconds * hour, grid.n_ticks // hour)
    sized_on = whole_hours if whole_hours.n_ticks else grid
    reader = DayReader(connection, sized_on, {}, 0, options.max_samples, options.parallel)
    last = sized_on.n_ticks - 1
    question = Question(_INFO, f"count by (namespace) ({options.templates.pod_info})", 0, last, per_pod=0)
    counts: dict[str, int] = {}
    for part in reader.matrices(question, Chunk(0, last)):
        most = np.zeros(len(part.labels))
        np.fmax.at(most, part.series, part.values)
        for labels, count in zip(part.labels, most.tolist(), strict=True):
            namespace = labels.get("namespace", "")
            if count > _MOST_PODS:
                raise ImpossibleAnswer(
                    f"query {_INFO} counts {count:.3g} pods in namespace {namespace[:63]!r}, and no cluster has more "
                    f"than {_MOST_PODS:,}: check what stands between us and Prometheus, and prometheus.queries.pod_info"
                )
            counts[namespace] = max(counts.get(namespace, 0), int(count))
    n_nodes = max(_FEW_NODES, sum(counts.values()) // _PODS_PER_NODE)
    return DayReader(connection, grid, counts, n_nodes, options.max_samples, options.parallel)


def _log_queries(reader: DayReader, options: SourceOptions) -> list[LogQueries]:
    """The queries of the log sources, the one that counts first; AUTO is every collector that answers on this day.

    The gauge of the kubelet is the last resort: only alone. Never empty.
    """
    if options.templates.pod_log or options.templates.node_log:
        return [LogQueries(options.templates.pod_log, options.templates.node_log)]
    if options.log_source is not LogSource.AUTO:
        return [log_queries(options.log_source)]
    last = reader.grid.n_ticks - 1
    ticks = (*range(last, -1, -max(1, _LOOK_FOR_LOGS_SECONDS // reader.grid.step_seconds)), 0)
    found: list[LogQueries] = []
    for source in LOG_METRICS:
        log = log_queries(source)
        if log.gauge and found:
            continue
        # Looked for by the query that will be used: a metric may be there without a single pod.
        counted = f"count({log.pod or log.node or log.gauge})"
        if any(part.labels for tick in ticks for part in reader.facts("log source", counted, tick)):
            found.append(log)
    return found or [LogQueries()]


def _samples(
    reader: DayReader, options: SourceOptions, log: LogQueries, progress: Progress
) -> tuple[dict[str, Samples], float]:
    """pod_info and usage of pods and nodes by query name, and the share that was recorded."""
    queries, n_ticks = options.templates, reader.grid.n_ticks
    # The raw counters may be gone where their records are kept.
    not_told = options.log_source is LogSource.AUTO and log == LogQueries()
    wanted = [_Read(_INFO, recorded_info(options.step_seconds), queries.pod_info, 1)]
    for resource in RESOURCES:
        for kind, recorded, per_pod in (("pod", recorded_pods, 1), ("node", recorded_nodes, 0)):
            name = f"{kind}_{resource.name}"
            raw = getattr(queries, name) if resource.name != "log" else getattr(log, kind)
            # Rules may have recorded log bytes of another source than the one that is asked for.
            ask_recorded = resource.name != "log" or bool(raw) or not_told
            template = recorded(resource.name, options.step_seconds) if ask_recorded else ""
            wanted.append(_Read(name, template, raw, per_pod))
    stage = f"read {reader.grid.day:%Y-%m-%d}"
    recorded_parts: list[list[Matrix]] = [[] for _ in wanted]
    if options.recording_rules:
        asked = [number for number, read in enumerate(wanted) if read.recorded]
        answers = reader.ask(
            [Question(wanted[i].name, wanted[i].recorded, 0, n_ticks - 1, wanted[i].per_pod) for i in asked],
            lambda done, total: progress(f"{stage}, recorded", done, total),
        )
        for number, parts in zip(asked, answers, strict=True):
            recorded_parts[number] = parts
    covered = [covered_ticks(parts, n_ticks) for parts in recorded_parts]
    questions, owner = [], []
    for number, read in enumerate(wanted):
        if read.raw:
            for first, last in uncovered_ranges(covered[number]):
                questions.append(Question(read.name, read.raw, first, last, read.per_pod))
                owner.append(number)
    raw_parts: list[list[Matrix]] = [[] for _ in wanted]
    for number, parts in zip(
        owner, reader.ask(questions, lambda done, total: progress(stage, done, total)), strict=True
    ):
        raw_parts[number] += parts
    samples = {
        read.name: Samples(recorded_parts[i], raw_parts[i], ~covered[i], read.name) for i, read in enumerate(wanted)
    }
    shares = []
    for there, parts in zip(covered, raw_parts, strict=True):
        known = there | covered_ticks(parts, n_ticks)
        if known.any():
            shares.append(there[known].mean())
    return samples, float(np.mean(shares)) if shares else 0.0


def _only(parts: Sequence[Matrix], ticks: Bools) -> list[Matrix]:
    """The samples at some ticks."""
    kept = []
    for part in parts:
        good = (part.tick >= 0) & (part.tick < len(ticks))
        good &= ticks[np.where(good, part.tick, 0)]
        kept.append(Matrix(part.labels, part.series[good], part.tick[good], part.values[good]))
    return kept


def _joined(parts: Sequence[Matrix]) -> Matrix:
    """The label sets of several instant answers."""
    labels = tuple(label for part in parts for label in part.labels)
    every = np.arange(len(labels))
    return Matrix(labels, every, np.zeros_like(every), np.concatenate([np.empty(0), *(part.values for part in parts)]))


def _requests(parts: Sequence[Matrix]) -> dict[tuple[str, str, str], Floats]:
    """Return (cpu, memory) by (namespace, pod, uid), and by (namespace, pod, "") for queries without the uid."""
    requests: dict[tuple[str, str, str], Floats] = {}
    vector = _joined(parts)
    for labels, value in zip(vector.labels, vector.values.tolist(), strict=True):
        column = {"cpu": 0, "memory": 1}.get(labels.get("resource", ""))
        if column is not None:
            key = labels.get("namespace", ""), labels.get("pod", ""), labels.get("uid", "")
            requests.setdefault(key, np.full(2, np.nan))[column] = value
    return requests
