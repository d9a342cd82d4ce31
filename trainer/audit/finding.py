"""What a check looks at, and what it answers: the evidence, and a finding with the share of the load that it
touches.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.cold_start import BORROWED_DAYS
from forecast.history import History
from forecast.model_findings import ModelFinding
from forecast.resources import CPU, RESOURCES
from forecast.usage_limits import CutSeries
from trainer.history.cleaning import CleaningReport

RECENT_DAYS: Final = BORROWED_DAYS
"""No predictor needs more than four weeks, so the shape of older days limits no forecast of today."""

LOAD_DAYS: Final = 7
"""A service weighs what it used on these last days: one that is gone limits nothing."""

WORST_SHOWN: Final = 5
"""Examples of a finding, those with the largest share of the load first."""


@dataclass(frozen=True, slots=True)
class AuditEvidence:
    """A history with what the checks have in common.

    recent       : the last `RECENT_DAYS` of the history
    alive        : (n_services,) whether the service had pods on one of the last `LOAD_DAYS` days
    service_load : (n_services, n_resources) mean usage of all pods of the service, base units; 0 = none known
    node_load    : (n_nodes, n_resources) mean usage of the node, base units; 0 = none known
    """

    history: History
    recent: History
    report: CleaningReport
    cut: Sequence[CutSeries]
    alive: Bools
    service_load: Floats
    node_load: Floats

    @classmethod
    def of(cls, history: History, report: CleaningReport, cut: Sequence[CutSeries] = ()) -> AuditEvidence:
        """report, cut: from the `HistoryFiles` that read the history"""
        recent = history.before(history.n_days, keep=RECENT_DAYS)
        pods = recent.replicas
        with_data = np.flatnonzero(np.isfinite(pods).any(axis=(0, 2)))[-LOAD_DAYS:]
        n_resources = history.usage_per_pod.shape[1]
        service_load = np.zeros((len(history.services), n_resources))
        node_load = np.zeros((len(history.nodes), n_resources))
        for r in range(n_resources):
            total = service_total(recent, r)
            service_load[:, r] = _level(total[:, with_data], total)
            of_nodes = recent.node_usage[:, r]
            node_load[:, r] = _level(of_nodes[:, with_data], of_nodes)
        return cls(
            history=history,
            recent=recent,
            report=report,
            cut=cut,
            alive=np.asarray((pods[:, with_data] > 0).any(axis=(1, 2))),
            service_load=service_load,
            node_load=node_load,
        )

    def cluster_total(self) -> Floats:
        """(n_days, 48) usage of all services together, of CPU or else of the first resource that is measured; NaN
        where there is no data."""
        measured = np.flatnonzero(self.service_load.sum(axis=0) > 0)
        resource = int(measured[0]) if len(measured) else CPU
        total = service_total(self.history, resource)
        return np.where(np.isfinite(total).any(axis=0), np.nansum(total, axis=0), np.nan)


def service_total(history: History, resource: int) -> Floats:
    """Usage of all pods of each service: (n_services, n_days, 48) base units; 0 = no pods, NaN = not measured."""
    pods = history.replicas.astype(np.float64)
    return np.where(pods == 0, 0.0, history.usage_per_pod[:, resource] * pods)


def _level(last_days: AnyFloats, all_days: AnyFloats) -> Floats:
    """Mean of each row over the last days, or else over all of them, 0 if nothing is known: (n_rows,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without any value
        last = np.nanmean(last_days, axis=(1, 2), dtype=np.float64)
        level = np.where(np.isfinite(last), last, np.nanmean(all_days, axis=(1, 2), dtype=np.float64))
    return np.nan_to_num(level)


class FindingKind(StrEnum):
    """What was found; the values are stable names in the JSON of the command."""

    SHORT_HISTORY = "short history"
    MISSING_DAYS = "missing days"
    MISSING_SAMPLES = "missing samples"
    NODE_GAPS = "node gaps"
    YOUNG_SERVICES = "young services"
    ONE_OFF_OWNERS = "one-off owners"
    UNMEASURED = "unmeasured services"
    PER_NODE_ONLY = "known per node only"
    UNMEASURED_RESOURCES = "unmeasured resources"
    PODS_AND_NODES = "pods and nodes differ"
    UNKNOWN_REQUESTS = "unknown requests"
    UNKNOWN_CAPACITY = "unknown capacity"
    IMPOSSIBLE_VALUES = "impossible values"
    ABOVE_CAPACITY = "above capacity"
    CPU_CEILING = "CPU ceiling"
    HIDDEN_DEMAND = "hidden demand"
    FULL_NODES = "full nodes"
    COUNTER_RESETS = "counter resets"
    NEVER_REPEATS = "never repeats"
    UNEVEN_PEAKS = "uneven peaks"
    WRONG_TIMES = "wrong times"
    SHIFTED_CLOCK = "shifted clock"
    TIME_ZONE = "time zone"
    NO_HOLIDAYS = "no holidays"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True, slots=True)
class Example:
    """A service or node; load_share: of its resource, NaN = unknown"""

    name: str
    resource: str
    load_share: float
    detail: str


@dataclass(frozen=True, slots=True)
class Finding:
    """load_share: (n_resources,) share of the load of all services, or of all nodes, that is touched; NaN = unknown"""

    kind: FindingKind
    n_services: int
    n_nodes: int
    load_share: Floats
    what: str
    advice: str
    worst: tuple[Example, ...] = ()

    def short(self) -> ModelFinding:
        """What a run prints and reports, and publishes with its model."""
        return ModelFinding(self.kind.value, self.what, self.advice)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.short().to_json(),
            "services": self.n_services,
            "nodes": self.n_nodes,
            "load_share": {r.name: float(share) for r, share in zip(RESOURCES, self.load_share, strict=True)},
            "worst": [
                {"name": one.name, "resource": one.resource, "load_share": one.load_share, "detail": one.detail}
                for one in self.worst
            ],
        }


def service_finding(
    kind: FindingKind,
    evidence: AuditEvidence,
    touched: Bools,
    *,
    what: str,
    advice: str,
    detail: Callable[[int, int], str],
    load_share: Floats | None = None,
) -> Finding | None:
    """Returns the finding about living services, None if it touches none.

    touched    : (n_services, n_resources)
    what       : with the place {n} for the number of services
    detail     : of a service and a resource, for the examples
    load_share : (n_resources,) where it is not that of the touched services
    """
    touched = touched & evidence.alive[:, None]
    if not (n := int(touched.any(axis=1).sum())):
        return None
    names = tuple(str(service) for service in evidence.history.services)
    return Finding(
        kind,
        n_services=n,
        n_nodes=0,
        load_share=_touched_share(evidence.service_load, touched) if load_share is None else load_share,
        what=what.format(n=f"{n:,} of {int(evidence.alive.sum()):,} services"),
        advice=advice,
        worst=_worst(names, evidence.service_load, touched, detail),
    )


def node_finding(
    kind: FindingKind,
    evidence: AuditEvidence,
    touched: Bools,
    *,
    what: str,
    advice: str,
    detail: Callable[[int, int], str],
) -> Finding | None:
    """Returns the finding about nodes, None if it touches none; touched: (n_nodes, n_resources), the rest as above."""
    if not (n := int(touched.any(axis=1).sum())):
        return None
    return Finding(
        kind,
        n_services=0,
        n_nodes=n,
        load_share=_touched_share(evidence.node_load, touched),
        what=what.format(n=f"{n:,} of {len(evidence.history.nodes):,} nodes"),
        advice=advice,
        worst=_worst(evidence.history.nodes, evidence.node_load, touched, detail),
    )


def cluster_finding(
    kind: FindingKind, evidence: AuditEvidence, *, what: str, advice: str, share: float = 1.0
) -> Finding:
    """Returns a finding that touches the same share of every resource whose load is known."""
    known = (evidence.service_load.sum(axis=0) > 0) | (evidence.node_load.sum(axis=0) > 0)
    return Finding(
        kind,
        n_services=int(evidence.alive.sum()),
        n_nodes=len(evidence.history.nodes),
        load_share=np.where(known, share, np.nan),
        what=what,
        advice=advice,
    )


def _shares(load: Floats) -> Floats:
    total = load.sum(axis=0)
    return load / np.where(total > 0, total, np.nan)


def _touched_share(load: Floats, touched: Bools) -> Floats:
    return np.asarray(np.where(touched, _shares(load), 0.0).sum(axis=0))


def _worst(
    names: tuple[str, ...], load: Floats, touched: Bools, detail: Callable[[int, int], str]
) -> tuple[Example, ...]:
    shares = np.where(touched, np.nan_to_num(_shares(load)), -1.0)
    resource = shares.argmax(axis=1)
    highest = shares.max(axis=1)
    rows = np.argsort(-highest, kind="stable")[:WORST_SHOWN]
    return tuple(
        Example(
            names[row],
            RESOURCES[resource[row]].name,
            float(highest[row]) if load[:, resource[row]].sum() > 0 else float("nan"),
            detail(row, int(resource[row])),
        )
        for row in rows.tolist()
        if highest[row] >= 0
    )
