"""What would become of the pods that a trial passed over, were its template applied to all. One pod of each service is
asked about; pods of one service are alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from admission.templates.effects import Group
from admission.templates.pod_shaping import shape
from admission.templates.shaped_pods import groups_of
from admission.templates.template_set import TemplateSet
from base.errors import InputError
from forecast_scheduler.commands.canary.expected_placing import ExpectedPlacing
from forecast_scheduler.commands.live_placing import BestNode
from forecast_scheduler.commands.render.pod_object import PodObject
from forecast_scheduler.commands.render.rendering import with_shape
from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo
from scorer.scorer import Scorer


@dataclass(frozen=True, slots=True)
class ControlService:
    """Pods of one service that a trial passed over. pod: one of them."""

    service: str
    pods: int
    pod: PodInfo


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Both placed anew, one at a time in the cluster as it is, so that like is compared with like.

    without, shaped : where one more pod would go without the template, and with it; None = see `untold`
    untold          : why there is nothing to compare; '' = there is
    """

    service: str
    pods: int
    without: BestNode | None
    shaped: BestNode | None
    untold: str = ""


def control_services(scorer: Scorer, binding: str) -> list[ControlService]:
    """Services with pods that the trial passed over and that sit somewhere, those with the most pods first."""
    found: dict[str, list[PodInfo]] = defaultdict(list)
    with scorer.tables.reading() as cluster:
        state = cluster.state
        for uid in state.seat_of:
            pod = state.pods[uid]
            if groups_of(pod).get(binding) is Group.CONTROL:
                found[str(state.service_key(pod))].append(pod)
    services = [
        ControlService(service, len(pods), min(pods, key=lambda pod: pod.name)) for service, pods in found.items()
    ]
    return sorted(services, key=lambda one: (-one.pods, one.service))


def what_if(
    services: Collection[ControlService],
    binding: str,
    templates: TemplateSet,
    objects: Mapping[tuple[str, str], PodObject],
    placing: ExpectedPlacing,
) -> list[WhatIf]:
    """objects: pods as they are stored, by namespace and name."""
    found = []
    for one in services:
        stored = objects.get((one.pod.namespace, one.pod.name))
        if stored is None:
            found.append(WhatIf(one.service, one.pods, None, None, "its pod is gone"))
            continue
        shaped = _shaped(stored, binding, templates, placing.labels_of(stored.namespace))
        if isinstance(shaped, str):
            found.append(WhatIf(one.service, one.pods, None, None, shaped))
            continue
        without, with_template = placing.now_and_shaped(one.pod, shaped)
        found.append(WhatIf(one.service, one.pods, without, with_template))
    return found


def mean_peaks(found: Collection[WhatIf]) -> tuple[float, float] | None:
    """Mean peak of the nodes that would be chosen, without and with the template, over all pods that both are known
    for; None = there are none."""
    known = [
        (one.pods, one.without.peak_share, one.shaped.peak_share)
        for one in found
        if one.without is not None
        and one.shaped is not None
        and one.without.peak_share is not None
        and one.shaped.peak_share is not None
    ]
    pods = sum(count for count, _, _ in known)
    if not pods:
        return None
    return sum(n * peak for n, peak, _ in known) / pods, sum(n * peak for n, _, peak in known) / pods


def _shaped(stored: PodObject, binding: str, templates: TemplateSet, labels: Mapping[str, str] | None) -> PodInfo | str:
    """The pod as the binding would have made it; or why it would not have."""
    pod = stored.created_anew().let_in(binding)
    point: Callable[[str], float] = lambda name: 0.0 if name == binding else 1.0  # noqa: E731 - others: by its record
    shaped = shape(pod.pod, pod.namespace, labels, templates, point)
    if not any(one.binding == binding for one in shaped.applied):
        skipped = next((one.message for one in shaped.skipped if one.binding == binding), "")
        return skipped or "the binding does not mean it any more"
    try:
        return decode_pod(with_shape(pod.pod, shaped))
    except InputError as error:
        return str(error)
