"""Everything that tables hold, public or not, as plain values: two of them are equal bit for bit or they are not.

The order of dicts is left out, except where sums of floats follow it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from forecast.model import PeakModel
from forecast.service_key import ServiceKey
from kube.objects.objects import NodeInfo, PodInfo
from placement.index.affinity_terms import SittingTerm
from scorer.assuming_cluster import AssumingCluster

_LEAVES: Final = (str, bytes, int, float, bool, type(None), Enum, PodInfo, NodeInfo, ServiceKey, frozenset)
_ELSEWHERE: Final = {
    "listeners",
    "on_overdue",
    "on_new_pod",
    "profiles",
    "bases",
    "horizon",
    "options",
    "capacities",
    "expected_runs",
    "observed_runs",
    "run_of",
}


def values(thing: object) -> Any:
    """An object with all that it holds."""
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape[1:], _used(thing).tobytes()
    if isinstance(thing, PeakModel):
        return id(thing)
    if isinstance(thing, _LEAVES):
        return thing
    if isinstance(thing, dict):
        return {key.term if isinstance(key, SittingTerm) else key: values(value) for key, value in thing.items()}
    if isinstance(thing, set):
        return set(thing)
    if is_dataclass(thing):
        return {field.name: values(getattr(thing, field.name)) for field in fields(thing)}
    if hasattr(thing, "__dict__"):
        return {name: values(value) for name, value in vars(thing).items() if name not in _ELSEWHERE}
    return [values(one) for one in thing] if hasattr(thing, "__iter__") else repr(thing)


def _used(table: NDArray[Any]) -> NDArray[Any]:
    """Without the rows at the end that say nothing: how many more there are than used depends on how tables grew."""
    while len(table) and not np.nan_to_num(table[-1].astype(np.float64)).any():
        table = table[:-1]
    return table


def tables_of(cluster: AssumingCluster) -> dict[str, Any]:
    """A cluster's own tables."""
    state, predicted = cluster.state, cluster.predicted
    ordered: list[dict[str, Any]] = [state.pods, state.seat_of, state._waiting, cluster.charges._charges]
    ordered += [*state._owned.values()]
    if predicted is not None:
        ordered.append(predicted.placed)
    return {**values(cluster), "orders": [list(one) for one in ordered]}


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """Where two results of `values` differ, for people."""
    if isinstance(a, dict) and isinstance(b, dict):
        gone = [f"{where}: {key!r} is in one only" for key in a.keys() ^ b.keys()]
        return gone + [one for key in a.keys() & b.keys() for one in differences(a[key], b[key], f"{where}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [one for i, (x, y) in enumerate(zip(a, b, strict=True)) for one in differences(x, y, f"{where}[{i}]")]
    return [] if a == b else [f"{where}: {a!r} and {b!r}"]
