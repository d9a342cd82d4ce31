"""What a pod requests in the whole units that filter NodeResourcesFit counts in."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.tables.columns import whole_units
from kube.objects.objects import PodInfo
from placement.filters.filter import Filter, Rejection
from placement.filters.node_resources_fit import NodeResourcesFit

NOMINATED_REASON = "node(s) keep room for nominated pods of equal or higher priority"


def fit_filter(filters: Sequence[Filter]) -> NodeResourcesFit | None:
    """NodeResourcesFit among filters, as it is set up there; None = requests are not looked at."""
    return next((one for one in filters if isinstance(one, NodeResourcesFit)), None)


def wanted_units(pod: PodInfo, fit: NodeResourcesFit) -> dict[str, int]:
    """By resource name, what counts; never 0."""
    units = {kind: whole_units(kind, amount) for kind, amount in pod.requests.items() if fit.counts(kind)}
    return {kind: amount for kind, amount in units.items() if amount > 0}


def is_about_requests(rejection: Rejection, pod: PodInfo) -> bool:
    """Whether it follows from requests and the number of pods alone: NodeResourcesFit, NominatedPods, and filters that
    say so."""
    reason = rejection.reason
    if rejection.by_requests or reason in ("Too many pods", NOMINATED_REASON):
        return True
    kind = reason.removeprefix("Insufficient ")
    return kind != reason and kind in pod.requests
