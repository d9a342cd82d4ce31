"""A profile: which pods it places, and the plugins it does so with. Several profiles share one queue and one cache.

Which pods a process places: by their schedulerName, and where pods are advised on, by the gate that holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from base.errors import InputError
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.filters.filter import Filter
from placement.plugins import EnqueueExtensions, NodePreference, PostFilter, PreEnqueue
from placement.policies.policy import Policies, Policy
from placement.scores.node_score import NodeScore, troubles
from scheduler.binding.binding_plugins import BindingPlugins


@dataclass(slots=True)
class SchedulingProfile:
    """
    name            : as in --profile: "online"
    scheduler_name  : pods with this schedulerName are its own
    policies        : which pod is placed how: filters, and which of our scores count
    filters         : run for every pod, before those of its policy; of two of one name the first
    preferences     : which nodes come first, in this order
    scores          : further Score plugins with their weights, in addition to kube-scheduler's and the predicted peak
    score_per_point : with the default weights: percent of capacity that counts 10 points in kube-scheduler's scores
    """

    name: str
    scheduler_name: str
    policies: Policies
    binding: BindingPlugins
    filters: tuple[Filter, ...] = ()
    pre_enqueue: tuple[PreEnqueue, ...] = ()
    post_filters: tuple[PostFilter, ...] = ()
    preferences: tuple[NodePreference, ...] = ()
    scores: tuple[tuple[NodeScore, int], ...] = ()
    score_per_point: float = 0.2
    _filters_of: dict[int, tuple[Policy, tuple[Filter, ...]]] = field(default_factory=dict)
    _asked_last: tuple[tuple[Filter, ...], Mapping[str, EnqueueExtensions]] = ((), MappingProxyType({}))

    def __post_init__(self) -> None:
        names = [one.name for one in self.filters]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"profile {self.name} has two filters {twice[0]}: give the plugin another name")

    def filters_of(self, pod: PodInfo) -> tuple[Filter, ...]:
        """All filters that a pod of this profile has to pass, by the policy that holds for it."""
        return self.filters_for(self.policies.choose(pod).policy)

    def hints_of(self, pod: PodInfo) -> Mapping[str, EnqueueExtensions]:
        """All plugins that may reject a pod of this profile, those of its policy too, by name."""
        filters = self.filters_of(pod)
        if self._asked_last[0] is not filters:
            self._asked_last = filters, {one.name: one for one in (*filters, *self.post_filters)}
        return self._asked_last[1]

    def troubles(self) -> tuple[str, ...]:
        """Return what filters and scores pods of this profile went on without lately, each in a sentence."""
        return troubles(self.filters, (score for score, _ in self.scores))

    def filters_for(self, policy: Policy) -> tuple[Filter, ...]:
        """All filters for pods of a policy."""
        known = self._filters_of.get(id(policy))
        if known is not None and known[0] is policy:
            return known[1]
        by_name: dict[str, Filter] = {}
        for one in (*self.filters, *policy.filters):
            by_name.setdefault(one.name, one)
        if len(self._filters_of) > 64:  # policies of documents that were replaced
            self._filters_of.clear()
        filters = tuple(by_name.values())
        self._filters_of[id(policy)] = policy, filters
        return filters


@dataclass(frozen=True, slots=True)
class PodsToPlace:
    """
    scheduler_names : of the pods
    gate            : scheduling gate that such a pod has and that does not keep it out; '' = every gate does
    wanted          : of these pods; quick, called under the lock of the tables
    """

    scheduler_names: frozenset[str]
    gate: str = ""
    wanted: Callable[[PodInfo], bool] = lambda pod: True

    def include(self, pod: PodInfo) -> bool:
        """Return whether the pod waits and is to be placed here, now or when its other gates are gone."""
        if pod.scheduler_name not in self.scheduler_names or not waits(pod) or pod.terminating:
            return False
        return (not self.gate or self.gate in pod.gates) and self.wanted(pod)

    def closed_gates(self, pod: PodInfo) -> tuple[str, ...]:
        """Return the gates that keep the pod out."""
        return tuple(gate for gate in pod.gates if gate != self.gate)
