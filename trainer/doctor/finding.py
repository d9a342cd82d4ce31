"""One finding: how many services or nodes it touches, their share of the load, the largest of them, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from base.arrays import Bools, Floats
from forecast.model_findings import ModelFinding
from forecast.resources import RESOURCES
from trainer.doctor.evidence import Evidence

WORST_SHOWN: Final = 5
"""Examples of a finding, those with the largest share of the load first."""


class Kind(StrEnum):
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

    kind: Kind
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
    kind: Kind,
    evidence: Evidence,
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
    kind: Kind, evidence: Evidence, touched: Bools, *, what: str, advice: str, detail: Callable[[int, int], str]
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


def cluster_finding(kind: Kind, evidence: Evidence, *, what: str, advice: str, share: float = 1.0) -> Finding:
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
