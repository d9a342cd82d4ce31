"""The filters of one node as upstream writes them: a pod, a node and the pods on it, one after the other.

Straight from framework/plugins/{nodeunschedulable,tainttoleration,nodeaffinity,nodeports,noderesources} and the
helpers these call; slow, and to be compared with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects.constraints import HostPort, NodeSelectorTerm, Operator, Requirement, Toleration
from kube.objects.objects import NodeInfo, PodInfo, Taint
from testing.placement.views import PASSES, Verdict

VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


@dataclass(frozen=True)
class OneNode:
    node: NodeInfo
    pods: Sequence[PodInfo]


def unschedulable(pod: PodInfo, on: OneNode) -> Verdict:
    cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if not on.node.unschedulable or any(tolerates(one, cordon) for one in pod.constraints.tolerations):
        return PASSES
    return Verdict.no("node(s) were unschedulable")


def taint_toleration(pod: PodInfo, on: OneNode) -> Verdict:
    for taint in on.node.taints:
        if taint.effect not in ("NoSchedule", "NoExecute"):
            continue
        if not any(tolerates(toleration, taint) for toleration in pod.constraints.tolerations):
            return Verdict.no("node(s) had untolerated taint(s)")
    return PASSES


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if len(toleration.effect) > 0 and toleration.effect != taint.effect:
        return False
    if len(toleration.key) > 0 and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated_soft_taints(pod: PodInfo, node: NodeInfo) -> int:
    soft = [one for one in pod.constraints.tolerations if one.effect in ("", "PreferNoSchedule")]
    taints = [taint for taint in node.taints if taint.effect == "PreferNoSchedule"]
    return sum(not any(tolerates(toleration, taint) for toleration in soft) for taint in taints)


def node_affinity(pod: PodInfo, on: OneNode) -> Verdict:
    terms = pod.constraints.required_node_terms
    node_names: set[str] | None = None
    for term in terms or ():
        of_term: set[str] | None = None
        for one in term.fields:
            if one.key == "metadata.name" and one.operator is Operator.IN:
                of_term = set(one.values) if of_term is None else of_term & set(one.values)
        if of_term is None:
            node_names = None
            break
        node_names = (node_names or set()) | of_term
    if node_names is not None and not node_names:
        return Verdict.no("pod affinity terms conflict")
    no_match = Verdict.no("node(s) didn't match Pod's node affinity/selector")
    for key, value in pod.constraints.node_selector:
        if on.node.labels.get(key) != value:
            return no_match
    if terms is None or any(term_matches(term, on.node) for term in terms):
        return PASSES
    return no_match


def preferred_weight(pod: PodInfo, node: NodeInfo) -> int:
    return sum(one.weight for one in pod.constraints.preferred_node_terms if term_matches(one.term, node))


def term_matches(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    if len(term.expressions) == 0 and len(term.fields) == 0:
        return False
    for one in term.expressions:
        if not is_valid(one):
            return False
    for one in term.fields:
        if one.operator not in (Operator.IN, Operator.NOT_IN) or len(one.values) != 1:
            return False
    for one in term.expressions:
        if not label_matches(one, node.labels):
            return False
    for one in term.fields:
        is_equal = ({"metadata.name": node.name}.get(one.key, "")) == one.values[0]
        if is_equal != (one.operator is Operator.IN):
            return False
    return True


def is_valid(one: Requirement) -> bool:
    if one.operator in (Operator.IN, Operator.NOT_IN) and len(one.values) == 0:
        return False
    if one.operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and len(one.values) != 0:
        return False
    if one.operator in (Operator.GT, Operator.LT) and (len(one.values) != 1 or parse_int(one.values[0]) is None):
        return False
    return all(len(value) <= 63 and VALUE.fullmatch(value) for value in one.values)


def label_matches(one: Requirement, labels: Mapping[str, str]) -> bool:
    exists = one.key in labels
    if one.operator is Operator.IN:
        return exists and labels[one.key] in one.values
    if one.operator is Operator.NOT_IN:
        return not exists or labels[one.key] not in one.values
    if one.operator is Operator.EXISTS:
        return exists
    if one.operator is Operator.DOES_NOT_EXIST:
        return not exists
    number, limit = parse_int(labels.get(one.key, "")), parse_int(one.values[0])
    if number is None or limit is None:
        return False
    return number > limit if one.operator is Operator.GT else number < limit


def parse_int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else None


def node_ports(pod: PodInfo, on: OneNode) -> Verdict:
    in_use = [port for other in on.pods for port in other.host_ports]
    if any(conflict(wanted, used) for wanted in pod.host_ports for used in in_use):
        return Verdict.no("node(s) didn't have free ports for the requested pod ports", preemptible=True)
    return PASSES


def conflict(a: HostPort, b: HostPort) -> bool:
    return (a.protocol, a.port) == (b.protocol, b.port) and (a.ip == b.ip or "0.0.0.0" in (a.ip, b.ip))


def node_resources_fit(pod: PodInfo, on: OneNode) -> Verdict:
    reasons = []
    preemptible = True
    if len(on.pods) + 1 > units("pods", on.node.allocatable.get("pods", 0.0)):
        reasons.append("Too many pods")
    for kind, amount in pod.requests.items():
        wanted = units(kind, amount)
        if kind == "pods" or wanted == 0:
            continue
        allocatable = units(kind, on.node.allocatable.get(kind, 0.0))
        requested = sum(units(kind, other.requests.get(kind, 0.0)) for other in on.pods)
        if wanted > allocatable - requested:
            reasons.append(f"Insufficient {kind}")
            preemptible = preemptible and wanted <= allocatable
    return Verdict.no(*reasons, preemptible=preemptible) if reasons else PASSES


def units(kind: str, amount: float) -> int:
    return math.ceil(round(amount * 1000, 6) if kind == "cpu" else amount)
