"""All ElasticQuotas as one tree in arrays: guarantees and bounds by quota and resource, parents before children.

Amounts are whole units, as kube-scheduler counts them: thousandths of a core, bytes, counts; cards in thousandths. What
no quota names is not limited. A parent guarantees at least what its children are guaranteed together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo
from tenants.elastic_quota import COMMON, QUOTA_LABEL, ElasticQuota, first_few

CARDS: Final = "cards"
"""Stands for all resources that mean cards: whole ones and shares of them."""

CARD_UNITS: Final = 1000
MOST_UNITS: Final = 10**15
"""Of one pod or one quota: thousands of them still add up exactly."""

BOUNDLESS: Final = 2**60
"""In place of a bound that is not given: no sum of requests comes near it."""

NO_QUOTA: Final = -1

MOST_RESOURCES: Final = 48
"""Columns: each costs time and memory for every quota and every pod."""

MOST_LEVELS: Final = 16
"""Of quotas above each other: what a pod uses counts in each of them."""


@dataclass(frozen=True, slots=True, eq=False)
class QuotaTree:
    """Compared by identity. Rows are quotas, every parent before its children; columns are resources.

    quotas     : (n_quotas,)
    parent     : (n_quotas,) rows; NO_QUOTA = it stands at the top
    depth      : (n_quotas,) 0 = at the top
    is_leaf    : (n_quotas,) no other quota names it as its parent
    lends      : (n_quotas,)
    weight     : (n_quotas,)
    resources  : column names, CARDS in place of those that mean cards
    guaranteed : (n_quotas, n_resources) units
    most       : (n_quotas, n_resources) units, BOUNDLESS = no bound
    problems   : one sentence for each thing that is not as it should be
    """

    quotas: tuple[ElasticQuota, ...]
    parent: Ints
    depth: Ints
    is_leaf: Bools
    lends: Bools
    weight: Floats
    resources: tuple[str, ...]
    guaranteed: Ints
    most: Ints
    problems: tuple[str, ...]
    _by_namespace: Mapping[str, tuple[int, ...]]
    _paths: tuple[tuple[int, ...], ...]

    def row_of(self, pod: PodInfo) -> int:
        """Return the quota that the pod counts in: the one that its label names, among those that are open to its
        namespace, else the first of these; NO_QUOTA = there is none. Quick."""
        rows = self._by_namespace.get(pod.namespace)
        if rows is None:
            return NO_QUOTA
        if len(rows) > 1 and (said := pod.labels.get(QUOTA_LABEL)) is not None:
            return next((row for row in rows if self.quotas[row].name == said), rows[0])
        return rows[0]

    def first_row(self, namespace: str) -> int:
        """Return the quota of pods of the namespace that name none; NO_QUOTA = there is none."""
        rows = self._by_namespace.get(namespace)
        return NO_QUOTA if rows is None else rows[0]

    def path(self, row: int) -> tuple[int, ...]:
        """Return the quota, its parent, and so on to the top."""
        return self._paths[row]

    def name(self, row: int) -> str:
        """Return how people know it: its namespace, with its name where the namespace has several."""
        quota = self.quotas[row]
        return quota.namespace if len(self._by_namespace[quota.namespace]) == 1 else quota.key

    def has_namespace(self, namespace: str) -> bool:
        """Return whether pods of the namespace count in any quota."""
        return namespace in self._by_namespace

    def counts_like(self, other: QuotaTree) -> bool:
        """Return whether all pods count in the same rows, by the same resources: only amounts differ."""
        return (
            [quota.key for quota in self.quotas] == [quota.key for quota in other.quotas]
            and self.resources == other.resources
            and self._by_namespace == other._by_namespace
            and self._paths == other._paths
        )


EMPTY: Final = QuotaTree(
    quotas=(),
    parent=np.zeros(0, dtype=np.int64),
    depth=np.zeros(0, dtype=np.int64),
    is_leaf=np.zeros(0, dtype=bool),
    lends=np.zeros(0, dtype=bool),
    weight=np.zeros(0),
    resources=(),
    guaranteed=np.zeros((0, 0), dtype=np.int64),
    most=np.zeros((0, 0), dtype=np.int64),
    problems=(),
    _by_namespace={},
    _paths=(),
)


def quota_tree(quotas: Iterable[ElasticQuota], *, card_resources: Collection[str] = ()) -> QuotaTree:
    """Put quotas together. card_resources: extended resources that mean cards."""
    by_key = {quota.key: quota for quota in sorted(quotas, key=lambda one: one.key)}
    if not by_key:
        return EMPTY
    problems = [f"ElasticQuota {quota.key}: {quota.problem}" for quota in by_key.values() if quota.problem]
    above, depth = _parents(by_key, problems)
    order = sorted(by_key, key=lambda key: (depth[key], key))
    row_of = {key: row for row, key in enumerate(order)}
    parent = np.array([row_of.get(above[key], NO_QUOTA) for key in order], dtype=np.int64)
    paths: list[tuple[int, ...]] = []
    for row, up in enumerate(parent.tolist()):
        paths.append((row,) if up == NO_QUOTA else (row, *paths[up]))
    resources = _resources(by_key.values(), card_resources, problems)
    column_of = {name: column for column, name in enumerate(resources)}
    ordered = tuple(by_key[key] for key in order)
    guaranteed = np.zeros((len(order), len(resources)), dtype=np.int64)
    most = np.full_like(guaranteed, BOUNDLESS)
    for row, quota in enumerate(ordered):
        for said, amounts in ((quota.guaranteed, guaranteed), (quota.most, most)):
            for name, units in _units(said, card_resources).items():
                if (column := column_of.get(name)) is not None:
                    amounts[row, column] = units
    problems += _at_odds(ordered, guaranteed, most, parent, resources)
    np.minimum(guaranteed, most, out=guaranteed)
    _raise_to_children(guaranteed, parent)
    by_namespace = _by_namespace(ordered, problems)
    return QuotaTree(
        quotas=ordered,
        parent=parent,
        depth=np.array([depth[key] for key in order], dtype=np.int64),
        is_leaf=~np.isin(np.arange(len(order)), parent),
        lends=np.array([quota.lends for quota in ordered], dtype=bool),
        weight=np.array([quota.weight for quota in ordered]),
        resources=resources,
        guaranteed=guaranteed,
        most=most,
        problems=tuple(problems),
        _by_namespace=by_namespace,
        _paths=tuple(paths),
    )


def _resources(
    quotas: Collection[ElasticQuota], card_resources: Collection[str], problems: list[str]
) -> tuple[str, ...]:
    """Return the columns. If there are too many, those that are common come first, then those of most namespaces: no
    tenant pushes out what others name by many names of its own."""
    named = dict.fromkeys(
        _column(name, card_resources) for quota in quotas for name in (*quota.guaranteed, *quota.most)
    )
    if len(named) <= MOST_RESOURCES:
        return tuple(named)
    pairs = {
        (quota.namespace, _column(name, card_resources))
        for quota in quotas
        for name in (*quota.guaranteed, *quota.most)
    }
    n_namespaces = Counter(name for _, name in pairs)
    in_order = sorted(named, key=lambda name: (name != CARDS and name not in COMMON, -n_namespaces[name], name))
    problems.append(
        f"ElasticQuotas name {len(named)} resources together, {MOST_RESOURCES} are counted: "
        f"{first_few(in_order[MOST_RESOURCES:])} have no min and no bound"
    )
    return tuple(in_order[:MOST_RESOURCES])


def _parents(by_key: Mapping[str, ElasticQuota], problems: list[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Key of the parent of each, '' = none, and how many are above it. A name is looked up in the namespace of the
    child first."""
    by_name: dict[str, list[str]] = {}
    for key, quota in by_key.items():
        by_name.setdefault(quota.name, []).append(key)
    above: dict[str, str] = {}
    for key, quota in by_key.items():
        near = f"{quota.namespace}/{quota.parent}"
        found = [near] if near in by_key and near != key else by_name.get(quota.parent, [])
        above[key] = found[0] if len(found) == 1 and found[0] != key else ""
        if quota.parent and not above[key]:
            why = "there are several of that name" if len(found) > 1 else "there is no such quota"
            problems.append(f"ElasticQuota {key} names the parent {quota.parent!r}: {why}, so it stands at the top")
    _cut_cycles(above, problems)
    depth: dict[str, int] = {}
    for key in by_key:
        trail, at = list[str](), key
        while at and at not in depth:
            trail.append(at)
            at = above[at]
        for one in reversed(trail):
            depth[one] = depth[above[one]] + 1 if above[one] else 0
            if depth[one] == MOST_LEVELS:
                problems.append(f"ElasticQuota {one} has {MOST_LEVELS} quotas above it: it stands at the top")
                above[one], depth[one] = "", 0
    return above, depth


def _cut_cycles(above: dict[str, str], problems: list[str]) -> None:
    """Each key is walked over once: a chain may have thousands."""
    walk_of: dict[str, int] = {}
    for walk, key in enumerate(above):
        at = key
        while at and at not in walk_of:
            walk_of[at] = walk
            at = above[at]
        if at and walk_of[at] == walk:
            cycle = [at]
            while (at := above[at]) != cycle[0]:
                cycle.append(at)
            first = min(cycle)
            problems.append(f"ElasticQuota {first} is its own ancestor: it stands at the top")
            above[first] = ""


def _column(resource: str, card_resources: Collection[str]) -> str:
    return CARDS if resource in card_resources else resource


def _units(amounts: Mapping[str, float], card_resources: Collection[str]) -> dict[str, int]:
    units: dict[str, int] = {}
    for resource, amount in amounts.items():
        if resource in card_resources:
            units[CARDS] = units.get(CARDS, 0) + min(round(CARD_UNITS * amount), MOST_UNITS)
        else:
            units[resource] = request_units(resource, amount)
    return units


def _at_odds(
    quotas: Sequence[ElasticQuota], guaranteed: Ints, most: Ints, parent: Ints, resources: Sequence[str]
) -> list[str]:
    found = []

    def of(columns: Bools) -> str:
        return first_few([resources[column] for column in np.flatnonzero(columns).tolist()])

    for row in np.flatnonzero((guaranteed > most).any(axis=1)).tolist():
        what = of(guaranteed[row] > most[row])
        found.append(f"ElasticQuota {quotas[row].key} has more min than max of {what}: max counts")
    together = np.zeros_like(guaranteed)
    has_parent = parent != NO_QUOTA
    np.add.at(together, parent[has_parent], guaranteed[has_parent])
    for row in np.flatnonzero((together > guaranteed).any(axis=1)).tolist():
        what = of(together[row] > guaranteed[row])
        found.append(f"ElasticQuota {quotas[row].key} has less min of {what} than its children together: theirs counts")
    return found


def _raise_to_children(guaranteed: Ints, parent: Ints) -> None:
    together = np.zeros_like(guaranteed)
    for row in range(len(parent) - 1, -1, -1):
        guaranteed[row] = np.maximum(guaranteed[row], together[row])
        if parent[row] != NO_QUOTA:
            together[parent[row]] += guaranteed[row]


def _by_namespace(quotas: Sequence[ElasticQuota], problems: list[str]) -> Mapping[str, tuple[int, ...]]:
    """Rows that are open to the pods of each namespace: those that name it in their annotation, then those in it. Of
    the latter leaves come first: a parent holds what is said of its children together."""
    has_children = {quota.parent for quota in quotas}
    named: dict[str, list[int]] = {}
    within: dict[str, list[int]] = {}
    for row, quota in enumerate(quotas):
        for namespace in quota.namespaces:
            named.setdefault(namespace, []).append(row)
        within.setdefault(quota.namespace, []).append(row)
    for namespace, rows in named.items():
        if len(rows) > 1:
            keys = first_few([quotas[row].key for row in rows])
            problems.append(f"namespace {namespace} is named by several ElasticQuotas ({keys}): the first counts")
        naming = set(rows)
        of_its_own = [quotas[row].key for row in within.get(namespace, ()) if row not in naming]
        if of_its_own:
            problems.append(
                f"namespace {namespace} is named by ElasticQuota {quotas[rows[0]].key}, which counts in place of its "
                f"own ({first_few(of_its_own)})"
            )
    for rows in within.values():
        rows.sort(key=lambda row: (quotas[row].name in has_children, quotas[row].name))
    found = {}
    for namespace in {*named, *within}:
        found[namespace] = tuple(dict.fromkeys((*named.get(namespace, ()), *within.get(namespace, ()))))
    return found
