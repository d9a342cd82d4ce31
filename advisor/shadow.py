"""Shadow mode: pods that ask for advice are decided about as they come, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kube.objects.objects import PodInfo
from placement.advice_gate import AdviceMode, labelled_mode, why_not_held
from placement.status import SUCCESS, Status


class ShadowBinder:
    """Implements Bind: leaves the pod to kube-scheduler."""

    name = "ShadowAdvice"

    async def bind(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS


def asks_for_advice(
    labels_of: Callable[[str], Mapping[str, str] | None],
    scheduler_names: Collection[str],
    by_policy: Callable[[PodInfo], AdviceMode | None] = lambda pod: None,
) -> Callable[[PodInfo], bool]:
    """Return whether the webhook would do anything with a pod.

    labels_of : of a namespace, None = not known
    by_policy : what the policy of a pod says of advice; None = nothing
    """

    def asks(pod: PodInfo) -> bool:
        mode = labelled_mode(pod.labels, labels_of(pod.namespace) or {}, by_policy(pod) or AdviceMode.OFF)
        return mode is not AdviceMode.OFF and not why_not_held(
            pod.namespace,
            scheduler_name=pod.scheduler_name,
            scheduler_names=scheduler_names,
            owner_kind=pod.owner.kind,
            node_name=pod.node,
        )

    return asks
