"""Arrays -> Prometheus text. 275,000 series of 5,000 nodes take a fifth of a second here; as objects of
prometheus_client they would take ten times as long, with the interpreter's lock held against the scores.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from base.arrays import Floats
from scorer.scorer_api import NodeFigures

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
        "Predicted peak of the node in a local day, in base units: as of now, and as it was predicted at midnight; "
        "both corrected by what was measured then, of which half is left after six hours.",
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
        "When the half hour of the node's expected peak in a local day begins, in seconds since 1970.",
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
        "Predicted peak of the node in a local day if all pods were where the shadow advised them, in base units, as "
        "of now. forecast_node_predicted_peak has them where they really are.",
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
