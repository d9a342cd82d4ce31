"""What would become of the pods that a trial passed over, were its template applied to all: where kube-scheduler would
put each, by filters, scores and our points. One pod of each service is asked about; pods of one service differ in
little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from admission.templates.effects import EffectGroup
from admission.templates.pod_shaping import shape
from admission.templates.shaped_pods import ShapedPods, groups_of, shaped_pods
from admission.templates.template_set import TemplateSet
from base.errors import InputError
from forecast_scheduler.commands.live_placing import BestNode, Placing
from forecast_scheduler.commands.policy.policy_documents import Choose
from forecast_scheduler.commands.render.pod_object import PodObject
from forecast_scheduler.commands.render.rendered_pod import with_shape
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import extender_options
from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo
from placement.feasibility import feasibility
from placement.filters.catalogue import kinds_read
from placement.index.index import INDEXED_KINDS
from placement.policies.policy import Policy
from placement.policies.provider import PolicyProvider
from placement.scores.default_scores import expected_choice
from scorer.background import ScorerBackground
from scorer.highest_peak import share_of
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy


class ExpectedPlacing(Placing):
    """Preferences of a template are weighed by kube-scheduler's own scores, so our points alone would not show them."""

    def __init__(self, scorer: Scorer, settings: Settings, choose: Choose | None = None) -> None:
        """choose: None = all pods are placed by the settings' policy."""
        super().__init__(scorer, settings)
        options = extender_options(settings)
        self._weight, self._choose = options.answers.weight, choose
        self._settings_policy = options.policy(scoring_policy(scorer.options))

    def now_and_shaped(self, pod: PodInfo, shaped: PodInfo) -> tuple[BestNode, BestNode]:
        """Where a pod would go if it had to be placed now, as it is and shaped. pod: of the cluster, perhaps bound."""
        with self.unbound(pod) as waiting:
            # Under another name: tables know the pod by its UID as it is.
            other = replace(shaped, uid=f"{pod.uid}/shaped", node="", started=None, created=waiting.created)
            return self._expected(waiting), self._expected(other)

    def _expected(self, pod: PodInfo) -> BestNode:
        with self._scorer.tables.reading():
            policy = self._policy_of(pod)
            feasible = feasibility(pod, self._view, self._filters_of(policy))
            if not feasible.nodes:
                return BestNode(None, None, 0, str(feasible))
            by_name = self._points(pod, feasible.nodes, policy)
            points = np.array([by_name[name] for name in feasible.nodes], dtype=np.int64)
            rows = np.array([self._view.state.row_of[name] for name in feasible.nodes], dtype=np.int64)
            node = feasible.nodes[expected_choice(pod, self._view, rows, points, self._weight)]
            return BestNode(node, share_of(self._scorer.expected_peak(pod, node)), len(feasible.nodes), "")

    def _policy_of(self, pod: PodInfo) -> Policy:
        return self._settings_policy if self._choose is None else self._choose(pod, self.labels_of).policy


@contextmanager
def open_canary(
    settings: Settings, inputs: Inputs, choose: Choose | None = None, provider: PolicyProvider | None = None
) -> Iterator[tuple[Scorer, ScorerBackground, ExpectedPlacing, ShapedPods]]:
    """Open a scorer with everything needed to compute the effect of bindings. See prepare_scorer.

    provider : of the policies that `choose` knows; the nodes that other pods could use depend on them, too
    """
    prepared = prepare_scorer(settings, inputs, policies=provider)
    placing = ExpectedPlacing(prepared.scorer, settings, choose)
    shaped = shaped_pods(prepared.scorer)
    if provider is not None:
        provider.read_labels_with(placing.labels_of)
    with prepared.following(kinds_read(placing.filters) if choose is None else INDEXED_KINDS):
        yield prepared.scorer, prepared.background, placing, shaped


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
            if groups_of(pod).get(binding) is EffectGroup.CONTROL:
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
