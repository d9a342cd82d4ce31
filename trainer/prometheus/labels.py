"""Which pod or node a series is about; one sentence when its labels do not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from base.errors import InputError
from trainer.prometheus.matrix import Matrix


def pod_names(name: str, labels: Sequence[Mapping[str, str]], *, once: bool = True) -> list[tuple[str, str]]:
    """(namespace, pod) of each series of a pod query; raises InputError if a label is missing.

    once : also if a pod comes twice
    """
    pods = [(series.get("namespace", ""), series.get("pod", "")) for series in labels]
    for pod, series in zip(pods, labels, strict=True):
        if not all(pod):
            raise InputError(
                f"query {name} returns a series without the label {'pod' if pod[0] else 'namespace'} (labels found: "
                f"{_shown(series)}): add 'by (namespace, pod)' or label_replace to prometheus.queries.{name}"
            )
    if once:
        _once(name, [f"pod {namespace}/{pod}" for namespace, pod in pods], "sum by (namespace, pod)")
    return pods


def node_names(name: str, labels: Sequence[Mapping[str, str]], *, once: bool = True) -> list[str]:
    """Node of each series of a node query; raises InputError if the label is missing.

    once : also if a node comes twice
    """
    nodes = [series.get("node", "") for series in labels]
    for node, series in zip(nodes, labels, strict=True):
        if not node:
            raise InputError(
                f"query {name} returns a series without the label node (labels found: {_shown(series)}): add "
                f"'by (node)' or label_replace to prometheus.queries.{name}"
            )
    if once:
        _once(name, [f"node {node}" for node in nodes], "sum by (node)")
    return nodes


def nodes_named(parts: Iterable[Matrix]) -> set[str]:
    """Every name that the answers to node queries have for a node."""
    return {node for part in parts for node in node_names("node", part.labels, once=False)}


def _once(name: str, things: list[str], way_out: str) -> None:
    if len(set(things)) < len(things):
        double = next(thing for thing in things if things.count(thing) > 1)
        raise InputError(
            f"query {name} returns {things.count(double)} series for {double}: aggregate them with '{way_out}' in "
            f"prometheus.queries.{name}"
        )


def _shown(labels: Mapping[str, str]) -> str:
    return ", ".join(sorted(labels)) or "none"
