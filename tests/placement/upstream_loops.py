"""InterPodAffinity and PodTopologySpread as kube-scheduler computes them, in loops over nodes and their pods.

From framework/plugins/interpodaffinity/{filtering,scoring}.go and podtopologyspread/{common,filtering,scoring}.go, with
none of the code that is tested but the matching of selectors, terms, node affinity and taints for one object.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube.objects.constraints import LabelSelector, PodAffinityTerm, TopologySpreadConstraint
from kube.objects.kubernetes_version import NEWEST, KubernetesVersion
from kube.objects.labels import selector_matches
from kube.objects.objects import NodeInfo, PodInfo

Status = tuple[str, bool] | None
Pairs = dict[tuple[str, str], int]

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True)
class LoopCluster:
    """Nodes, pods that sit (on nodes that may not exist), labels by namespace."""

    nodes: Sequence[NodeInfo]
    pods: Sequence[PodInfo]
    namespaces: Mapping[str, Mapping[str, str]]
    version: KubernetesVersion = NEWEST
    _by_node: dict[str, list[PodInfo]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for pod in self.pods:
            self._by_node.setdefault(pod.node, []).append(pod)

    def pods_on(self, node: NodeInfo) -> list[PodInfo]:
        return self._by_node.get(node.name, [])

    def means(self, term: PodAffinityTerm, pod: PodInfo) -> bool:
        in_namespace = pod.namespace in term.namespaces or (
            term.namespace_selector is not None
            and selector_matches(term.namespace_selector, self.namespaces.get(pod.namespace, {}))
        )
        return in_namespace and selector_matches(term.selector, pod.labels)

    def mine_means(self, term: PodAffinityTerm, pod: PodInfo) -> bool:
        """Of the pod being placed: namespaces that are listed are found by label; the selector meets no labels then.

        From 1.37 it is gone by then, unless it is empty.
        """
        selector = term.namespace_selector
        listed = {name for name, labels in self.namespaces.items() if selector_matches(selector, labels)}
        is_left = selector is not None and not (self.version.keeps_namespace_selectors and selector.requirements)
        in_namespace = pod.namespace in term.namespaces | listed or (is_left and selector_matches(selector, {}))
        return in_namespace and selector_matches(term.selector, pod.labels)

    # InterPodAffinity

    def inter_pod_affinity(self, pod: PodInfo) -> dict[str, tuple[str, bool]]:
        existing, affinity, anti_affinity = Pairs(), Pairs(), Pairs()
        said = pod.constraints
        for node in self.nodes:
            for sitting in self.pods_on(node):
                for term in sitting.constraints.anti_affinity:
                    if self.means(term, pod):
                        _add(existing, node, term.topology_key, 1)
                if said.affinity and all(self.mine_means(term, sitting) for term in said.affinity):
                    for term in said.affinity:
                        _add(affinity, node, term.topology_key, 1)
                for term in said.anti_affinity:
                    if self.mine_means(term, sitting):
                        _add(anti_affinity, node, term.topology_key, 1)
        found = {}
        for node in self.nodes:
            status = self._affinity_status(pod, node, existing, affinity, anti_affinity)
            if status is not None:
                found[node.name] = status
        return found

    def _affinity_status(
        self, pod: PodInfo, node: NodeInfo, existing: Pairs, affinity: Pairs, anti_affinity: Pairs
    ) -> Status:
        said = pod.constraints
        pods_exist = True
        for term in said.affinity:
            if term.topology_key not in node.labels:
                return "node(s) didn't match pod affinity rules", False
            if affinity.get((term.topology_key, node.labels[term.topology_key]), 0) <= 0:
                pods_exist = False
        if not pods_exist and not (not affinity and all(self.mine_means(term, pod) for term in said.affinity)):
            return "node(s) didn't match pod affinity rules", False
        for term in said.anti_affinity:
            value = node.labels.get(term.topology_key)
            if value is not None and anti_affinity.get((term.topology_key, value), 0) > 0:
                return "node(s) didn't match pod anti-affinity rules", True
        if any(existing.get(pair, 0) > 0 for pair in node.labels.items()):
            return "node(s) didn't satisfy existing pods anti-affinity rules", True
        return None

    def inter_pod_affinity_scores(self, pod: PodInfo, candidates: Sequence[NodeInfo]) -> dict[str, int]:
        pairs, said = Pairs(), pod.constraints
        for node in self.nodes:
            for sitting in self.pods_on(node):
                for mine in said.preferred_affinity:
                    if self.mine_means(mine.term, sitting):
                        _add(pairs, node, mine.term.topology_key, mine.weight)
                for mine in said.preferred_anti_affinity:
                    if self.mine_means(mine.term, sitting):
                        _add(pairs, node, mine.term.topology_key, -mine.weight)
                for term in sitting.constraints.affinity:
                    if self.means(term, pod):
                        _add(pairs, node, term.topology_key, 1)
                for theirs in sitting.constraints.preferred_affinity:
                    if self.means(theirs.term, pod):
                        _add(pairs, node, theirs.term.topology_key, theirs.weight)
                for theirs in sitting.constraints.preferred_anti_affinity:
                    if self.means(theirs.term, pod):
                        _add(pairs, node, theirs.term.topology_key, -theirs.weight)
        raw = {node.name: sum(pairs.get(pair, 0) for pair in node.labels.items()) for node in candidates}
        least, most = min(raw.values()), max(raw.values())
        if most == least:
            return dict.fromkeys(raw, 0)
        return {name: int(100.0 * (float(score - least) / float(most - least))) for name, score in raw.items()}

    # PodTopologySpread

    def pod_topology_spread(
        self, pod: PodInfo, left_in: Mapping[tuple[bool, bool], set[str]]
    ) -> dict[str, tuple[str, bool]]:
        """left_in: names of the nodes that the policies (honor affinity, honor taints) leave in."""
        hard = [one for one in pod.constraints.spread if one.hard]
        counts: list[dict[str, int]] = [{} for _ in hard]
        for node in self.nodes:
            if not all(one.topology_key in node.labels for one in hard):
                continue
            for one, count in zip(hard, counts, strict=True):
                if node.name in left_in[one.honor_node_affinity, one.honor_node_taints]:
                    value = node.labels[one.topology_key]
                    count[value] = count.get(value, 0) + self._matching(node, one.selector, pod.namespace)
        found = {}
        for node in self.nodes:
            status = _spread_status(pod, node, hard, counts)
            if status is not None:
                found[node.name] = status
        return found

    def pod_topology_spread_scores(
        self,
        pod: PodInfo,
        candidates: Sequence[NodeInfo],
        left_in: Mapping[tuple[bool, bool], set[str]],
        *,
        require_all: bool = True,
        soft: Sequence[TopologySpreadConstraint],
    ) -> dict[str, int]:
        if not soft:
            return {node.name: 0 for node in candidates}
        counts: list[dict[str, int]] = [{} for _ in soft]
        ignored = set()
        for node in candidates:
            if require_all and not all(one.topology_key in node.labels for one in soft):
                ignored.add(node.name)
                continue
            for one, count in zip(soft, counts, strict=True):
                if one.topology_key != HOSTNAME:
                    count.setdefault(node.labels.get(one.topology_key, ""), 0)
        sizes = [
            len(candidates) - len(ignored) if one.topology_key == HOSTNAME else len(count)
            for one, count in zip(soft, counts, strict=True)
        ]
        for node in self.nodes:
            if require_all and not all(one.topology_key in node.labels for one in soft):
                continue
            for one, count in zip(soft, counts, strict=True):
                value = node.labels.get(one.topology_key, "")
                if node.name in left_in[one.honor_node_affinity, one.honor_node_taints] and value in count:
                    count[value] += self._matching(node, one.selector, pod.namespace)
        raw = {}
        for node in candidates:
            score = 0.0
            for one, count, size in zip(soft, counts, sizes, strict=True):
                if node.name in ignored or one.topology_key not in node.labels:
                    continue
                if one.topology_key == HOSTNAME:
                    n_pods = self._matching(node, one.selector, pod.namespace)
                else:
                    n_pods = count[node.labels[one.topology_key]]
                score += n_pods * math.log(size + 2) + (one.max_skew - 1)
            raw[node.name] = math.floor(score + 0.5)
        kept = [score for name, score in raw.items() if name not in ignored]
        least, most = min(kept, default=0), max(kept, default=0)
        return {
            name: 0 if name in ignored else 100 if most == 0 else 100 * (most + least - score) // most
            for name, score in raw.items()
        }

    def _matching(self, node: NodeInfo, selector: LabelSelector | None, namespace: str) -> int:
        if selector is not None and not selector.requirements and not self.version.counts_empty_selectors:
            return 0
        return sum(
            1
            for pod in self.pods_on(node)
            if not pod.terminating and pod.namespace == namespace and selector_matches(selector, pod.labels)
        )


def _spread_status(
    pod: PodInfo, node: NodeInfo, hard: Sequence[TopologySpreadConstraint], counts: Sequence[Mapping[str, int]]
) -> Status:
    for one, count in zip(hard, counts, strict=True):
        if one.topology_key not in node.labels:
            return "node(s) didn't match pod topology spread constraints (missing required label)", False
        least = min(count.values(), default=2**31 - 1)
        if len(count) < one.min_domains:
            least = 0
        own = 1 if selector_matches(one.selector, pod.labels) else 0
        if count.get(node.labels[one.topology_key], 0) + own - least > one.max_skew:
            return "node(s) didn't match pod topology spread constraints", True
    return None


def _add(pairs: Pairs, node: NodeInfo, key: str, value: int) -> None:
    if key in node.labels:
        pair = (key, node.labels[key])
        pairs[pair] = pairs.get(pair, 0) + value
        if not pairs[pair]:
            del pairs[pair]
