"""What a set of policies would mean for the pods of a cluster, compared with another set. Pure: pods in, figures out.

pods --choose, by both sets--> counts by policy and reason, annotations that name no policy
     --where both differ-----> kinds of pods that are touched --best_node, one pod of each kind--> moves
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from forecast_scheduler.commands.live_placing import BestNode
from kube.objects.counted_pods import FINISHED
from kube.objects.objects import PodInfo
from placement.filters.pod_annotations import comes_with_node
from placement.policies.policy import ChosenPolicy, Policy, shortened_name
from placement.policies.policy_set import PolicyChoice

_MOST_UNKNOWN: Final = 100
"""Most unknown names that are listed: any client may write names."""

Choose = Callable[[PodInfo], PolicyChoice]


@dataclass(frozen=True, slots=True)
class ChoiceCount:
    """Number of pods that are of a policy for one and the same reason."""

    policy: str
    because: str
    pods: int


@dataclass(frozen=True, slots=True)
class UnknownPolicyName:
    """An annotation that names no policy, cut to 63 characters. pod: one of those that carry it."""

    name: str
    pods: int
    pod: str


@dataclass(frozen=True, slots=True)
class PodKind:
    """Pods that are alike: of one service, and of the same policies before and after. pod: one of them."""

    pod: PodInfo
    service: str
    pods: int
    before: ChosenPolicy
    after: ChosenPolicy


@dataclass(frozen=True, slots=True)
class Survey:
    """Which pods the policies would be chosen for.

    pods          : that run or wait
    choices       : the most pods first
    unknown       : the most pods first; unknown_pods: all of them, also those that are not listed
    touched       : kinds of pods that would be treated otherwise than before, the most pods first
    touched_pods  : all of them
    left_out, left_out_pods : kinds beyond the number asked for, and their pods
    """

    pods: int
    choices: tuple[ChoiceCount, ...]
    unknown: tuple[UnknownPolicyName, ...]
    unknown_pods: int
    touched: tuple[PodKind, ...]
    touched_pods: int
    left_out: int
    left_out_pods: int


@dataclass(frozen=True, slots=True)
class PolicyMove:
    """The best node of one kind of pods by both sets. runs_on: of the pod that was looked at; '' = it waits."""

    kind: PodKind
    runs_on: str
    before: BestNode
    after: BestNode

    @property
    def is_move(self) -> bool:
        """Another node would be better than the one that is best so far."""
        return self.before.node != self.after.node


def survey(
    pods: Iterable[PodInfo],
    service_of: Callable[[PodInfo], str],
    before: Choose,
    after: Choose,
    alike: Callable[[Policy, Policy], bool],
    *,
    top: int,
) -> Survey:
    """Count what the sets choose. Pods that are finished or going do not count.

    before, after : of the policies in place, and of those to be checked
    alike         : whether two policies place every pod in the same way
    top           : most kinds of touched pods
    """
    choices: Counter[tuple[str, str]] = Counter()
    unknown: dict[str, list[PodInfo]] = {}
    kinds: dict[tuple[str, str, str], tuple[ChosenPolicy, ChosenPolicy, list[PodInfo]]] = {}
    known_alike: dict[tuple[str, str], bool] = {}
    n_pods = 0
    for pod in pods:
        if pod.terminating or pod.phase in FINISHED:
            continue
        n_pods += 1
        choice = after(pod)
        old, new = before(pod).chosen, choice.chosen
        if choice.unknown:
            unknown.setdefault(choice.unknown, []).append(pod)
            new = after(replace(pod, annotations={})).chosen  # pods differ by what chose, not by what did not
        choices[new.policy.name, new.because] += 1
        pair = (old.policy.name, new.policy.name)
        if pair not in known_alike:
            known_alike[pair] = alike(old.policy, new.policy)
        if not known_alike[pair] and not comes_with_node(pod):  # wherever the node is, that pod belongs
            kinds.setdefault((service_of(pod), *pair), (old, new, []))[2].append(pod)
    touched = sorted(
        (PodKind(_representative(of), service, len(of), old, new) for (service, _, _), (old, new, of) in kinds.items()),
        key=lambda kind: (-kind.pods, kind.service, kind.after.policy.name),
    )
    return Survey(
        pods=n_pods,
        choices=tuple(
            ChoiceCount(policy, because, count)
            for (policy, because), count in sorted(choices.items(), key=lambda item: (-item[1], item[0]))
        ),
        unknown=tuple(
            UnknownPolicyName(shortened_name(name), len(of), _name(_representative(of)))
            for name, of in sorted(unknown.items(), key=lambda item: (-len(item[1]), item[0]))[:_MOST_UNKNOWN]
        ),
        unknown_pods=sum(map(len, unknown.values())),
        touched=tuple(touched[:top]),
        touched_pods=sum(kind.pods for kind in touched),
        left_out=len(touched[top:]),
        left_out_pods=sum(kind.pods for kind in touched[top:]),
    )


def moves(kinds: Iterable[PodKind], best_node: Callable[[PodInfo, Policy, str], BestNode]) -> tuple[PolicyMove, ...]:
    """The best nodes of each kind. best_node: by a policy; the node named last is taken among equals."""
    found = []
    for kind in kinds:
        before = best_node(kind.pod, kind.before.policy, kind.pod.node)
        after = best_node(kind.pod, kind.after.policy, before.node or kind.pod.node)
        found.append(PolicyMove(kind, kind.pod.node, before, after))
    return tuple(found)


def _representative(pods: list[PodInfo]) -> PodInfo:
    """One that runs rather than one that waits; the first by name."""
    return min(pods, key=lambda pod: (not pod.node, pod.namespace, pod.name))


def _name(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.name}"
