"""What the scorer knows of nodes and services, as Prometheus text made from arrays at each scrape. New metrics of
nodes are added here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from base.arrays import Floats
from cluster.degradation import Level
from scorer.answers import PoolLevel, ScorerStatus
from scorer.scorer_api import NodeFigures, ScorerApi

# Arrays -> Prometheus text. 275,000 series of 5,000 nodes take a fifth of a second here; as objects of
# prometheus_client they would take ten times as long, with the interpreter's lock held against the scores.
#
# https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format

QUANTILES = ("0.5", "0.95")
DAYS = ("today", "tomorrow")


def labels(**values: str) -> str:
    """Inside of the braces, escaped."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())


def family(
    name: str, text: str, parts: Iterable[tuple[Sequence[str], Floats, str]], *, digits: int = 7
) -> Iterator[str]:
    """One gauge.

    parts  : label texts, as many values, and the rest of the labels (",quantile=..." or nothing); NaN is left out
    digits : of a value that count
    """
    yield f"# HELP {name} {text}\n# TYPE {name} gauge\n"
    for prefixes, values, rest in parts:
        lines = [
            f"{name}{{{prefix}{rest}}} {value:.{digits}g}\n"
            for prefix, value in zip(prefixes, values.ravel().tolist(), strict=True)
            if value == value
        ]
        yield "".join(lines)


def node_text(figures: NodeFigures) -> Iterator[str]:
    """The series of every node."""
    prefixes = _pairs([labels(node=name) for name in figures.nodes], figures.resources)
    yield from family(
        "forecast_node_predicted_usage",
        "Predicted usage of the node in this half hour, corrected by what is measured now, in base units (cores, "
        "bytes, bytes per second). To see how good the model is compare usage with forecast_node_model_usage.",
        ((prefixes, figures.usage[:, :, q], f',quantile="{QUANTILES[q]}"') for q in range(2)),
    )
    yield from family(
        "forecast_node_model_usage",
        "What the model says of the pods on the node for this half hour, before what is measured now corrects it, in "
        "base units.",
        ((prefixes, figures.model_usage[:, :, q], f',quantile="{QUANTILES[q]}"') for q in range(2)),
    )
    yield from family(
        "forecast_node_predicted_peak",
        "Expected peak (0.5) and upper bound (0.95) of the node in a local day, in base units: as of now, today of the "
        "half hours to come; and as it was predicted at midnight. Both are corrected by what was measured then, of "
        "which half is left after six hours.",
        (
            (prefixes, array[:, :, q, d], f',quantile="{QUANTILES[q]}",day="{DAYS[d]}",as_of="{as_of}"')
            for as_of, array in (("now", figures.peak), ("midnight", figures.frozen_peak))
            for q in range(2)
            for d in range(2)
        ),
    )
    if figures.shadow_usage is not None and figures.shadow_peak is not None:
        yield from _shadow_text(prefixes, figures.shadow_usage, figures.shadow_peak)
    yield from family(
        "forecast_node_predicted_peak_timestamp_seconds",
        "When the half hour of the node's expected peak in a local day begins, in seconds since 1970; of today it "
        "is still to come.",
        ((prefixes, figures.peak_at[:, :, d], f',day="{DAYS[d]}"') for d in range(2)),
        digits=10,
    )
    yield from family(
        "forecast_node_capacity",
        "What the node can do at most, in base units; what is no limit has no series.",
        [(prefixes, figures.capacity, "")],
    )
    yield from family(
        "forecast_node_capacity_assumed",
        "1 = forecast_node_capacity of the node is not known: the trainer assumed it from what such nodes sustained. A "
        "known capacity has no series.",
        [(prefixes, np.where(figures.assumed, 1.0, np.nan), "")],
    )
    yield from family(
        "forecast_node_virtual_available",
        "Capacity minus usage at the last metric minus virtual requests not yet seen in it, in base units.",
        [(prefixes, figures.available, "")],
    )


def _shadow_text(prefixes: Sequence[str], usage: Floats, peak: Floats) -> Iterator[str]:
    """The series of every node as a shadow sees it."""
    yield from family(
        "forecast_shadow_node_predicted_usage",
        "Predicted usage of the node in this half hour if all pods were where the shadow advised them, in base units. "
        "forecast_node_predicted_usage has them where they really are.",
        ((prefixes, usage[:, :, q], f',quantile="{QUANTILES[q]}"') for q in range(2)),
    )
    yield from family(
        "forecast_shadow_node_predicted_peak",
        "Expected peak (0.5) and upper bound (0.95) of the node in a local day if all pods were where the shadow "
        "advised them, in base units, as of now. forecast_node_predicted_peak has them where they really are.",
        (
            (prefixes, peak[:, :, q, d], f',quantile="{QUANTILES[q]}",day="{DAYS[d]}"')
            for q in range(2)
            for d in range(2)
        ),
    )


def service_text(services: Sequence[str], resources: Sequence[str], peaks: Floats) -> Iterator[str]:
    """The series of every service.

    services : namespace/Kind/name;   peaks : (n_services, n_resources, 2)
    """
    names = [labels(**dict(zip(("namespace", "kind", "name"), s.split("/"), strict=True))) for s in services]
    prefixes = _pairs(names, resources)
    yield from family(
        "forecast_service_predicted_peak",
        "Predicted peak of one pod of the service today, in base units.",
        ((prefixes, np.asarray(peaks)[:, :, q], f',quantile="{QUANTILES[q]}"') for q in range(2)),
    )


def _pairs(names: Sequence[str], resources: Sequence[str]) -> list[str]:
    suffixes = ["," + labels(resource=resource) for resource in resources]
    return [name + suffix for name in names for suffix in suffixes]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def scorer_series(scorer: ScorerApi, *, nodes: bool, services: bool) -> Iterator[bytes]:
    """Text of the series of each node and each service; nothing before the scorer is ready."""
    if not scorer.status().ready:
        return
    if nodes:
        figures = scorer.node_figures()
        yield from (text.encode() for text in node_text(figures))
        counts = np.bincount(figures.level, minlength=len(Level)) if len(figures.level) else [0] * len(Level)
        family = GaugeMetricFamily(
            "forecast_degradation_level_nodes", "Nodes at each degradation level.", labels=["level"]
        )
        for level in Level:
            family.add_metric([str(int(level))], float(counts[level]))
        yield _text(family)
    if services:
        yield from (text.encode() for text in service_text(*scorer.service_peaks()))


class StateCollector(Collector):
    """Gauges of the scorer's state."""

    def __init__(
        self, status: Callable[[], ScorerStatus], backtest_loss: Callable[[], Mapping[tuple[str, str], float]] = dict
    ) -> None:
        self._status, self._backtest_loss = status, backtest_loss

    def collect(self) -> Iterator[Metric]:
        """Read the state once."""
        status = self._status()
        yield GaugeMetricFamily("forecast_ready", "1 = the cluster was read completely.", value=float(status.ready))
        yield GaugeMetricFamily(
            "forecast_degradation_level",
            "Level of the cluster as a whole: 0 fresh, 1 no live correction, 2 old model, 3 requests, 4 neutral.",
            value=float(status.level),
        )
        neutral = GaugeMetricFamily(
            "forecast_score_neutral",
            "1 = the score is the same for all nodes now, because there is no_model, an old_model, no_usage, or an "
            "old_state of the cluster; other scores have no series.",
            labels=["score", "because"],
        )
        for score, because in status.neutral_scores.items():
            neutral.add_metric([score, because], 1.0)
        yield neutral
        yield from _water_levels(status.water_levels)
        yield GaugeMetricFamily(
            "forecast_unknown_service_pods", "Pods whose service the model does not know.", status.unknown_service_pods
        )
        for name, text, value in (
            (
                "forecast_model_age_seconds",
                "Age of the model in use.",
                None if status.model is None else status.model.age_seconds,
            ),
            ("forecast_cluster_state_age_seconds", "Time since the API server was heard of.", status.state_age_seconds),
            ("forecast_usage_age_seconds", "Age of the latest polled usage.", status.metrics_age_seconds),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)
        if status.model is not None:
            info = GaugeMetricFamily("forecast_model_info", "The model in use; always 1.", labels=["version"])
            info.add_metric([status.model.version], 1.0)
            yield info
            findings = GaugeMetricFamily(
                "forecast_model_findings",
                "1 for each kind of finding of the run that made the model in use; no series = it found nothing.",
                labels=["finding"],
            )
            for name in dict.fromkeys(one.finding for one in status.model.findings):
                findings.add_metric([name], 1.0)
            yield findings
        refused = status.refused_model is not None or (status.model is not None and status.model.refused is not None)
        yield GaugeMetricFamily("forecast_model_refused", "1 = a newer model was refused.", value=float(refused))
        objects = GaugeMetricFamily("forecast_cluster_objects", "Objects in the scorer's tables.", labels=["kind"])
        for kind in ("nodes", "pods", "services"):
            objects.add_metric([kind], float(getattr(status, kind)))
        yield objects
        yield GaugeMetricFamily("forecast_measured_nodes", "Nodes measured recently.", value=status.measured_nodes)
        yield GaugeMetricFamily(
            "forecast_unread_capacity_annotations",
            "Nodes whose capacity annotation has entries that cannot be read; its other entries count.",
            value=status.unread_capacities,
        )
        yield GaugeMetricFamily(
            "forecast_pods_beyond_nodes",
            "Pods that request or declare more than their node has, or than any node: they count as what it has.",
            value=status.pods_beyond_nodes,
        )
        yield GaugeMetricFamily(
            "forecast_seen_gated_longest_seconds",
            "Time for which our gate alone has held a pod longest, also one that waits for a quota, as seen from here.",
            value=status.gated_longest_seconds,
        )
        losses = GaugeMetricFamily(
            "forecast_backtest_loss",
            "Pinball loss of the daily peaks of services, relative to the peaks, as published with the model in use.",
            labels=["resource", "quantile"],
        )
        for key, loss in self._backtest_loss().items():
            losses.add_metric(list(key), loss)
        yield losses
        if status.last_check is not None:
            yield GaugeMetricFamily(
                "forecast_self_check_drift",
                "Differences between the tables and their rebuild at the last self-check; 0 = sound.",
                value=float(len(status.last_check.drift)),
            )


def _water_levels(pools: Sequence[PoolLevel]) -> Iterator[Metric]:
    level = GaugeMetricFamily(
        "forecast_water_level",
        "Share of the allocatable of a pool of nodes that is requested, of its fullest resource.",
        labels=["pool"],
    )
    stack = GaugeMetricFamily(
        "forecast_stack_weight",
        "How much the score spread_or_stack stacks in a pool of nodes: 0 = it spreads, 1 = it stacks.",
        labels=["pool"],
    )
    for one in pools:
        level.add_metric([one.pool], one.water_level)
        stack.add_metric([one.pool], one.stack_weight)
    yield level
    yield stack


class _One(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _text(family: Metric) -> bytes:
    registry = CollectorRegistry()
    registry.register(_One(family))
    return generate_latest(registry)
