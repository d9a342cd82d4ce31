"""Where kube-scheduler would put a pod that is as it is, or shaped by templates: filters, scores, our points."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from admission.templates.shaped_pods import ShapedPods, shaped_pods
from forecast_scheduler.commands.live_placing import BestNode, Placing
from forecast_scheduler.commands.policy.choice import Choose
from forecast_scheduler.commands.scorer.setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.extender_options import extender_options
from kube.objects.objects import PodInfo
from placement.feasibility import feasibility
from placement.filters.catalogue import kinds_read
from placement.index.index import INDEXED_KINDS
from placement.kube_scheduler_choice import expected_choice
from placement.policies.policy import Policy
from placement.policies.provider import PolicyProvider
from scorer.background import Background
from scorer.policy import scoring_policy
from scorer.scorer import Scorer


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
            return BestNode(node, self._scorer.peak_share(pod, node), len(feasible.nodes), "")

    def _policy_of(self, pod: PodInfo) -> Policy:
        return self._settings_policy if self._choose is None else self._choose(pod, self.labels_of).policy


@contextmanager
def open_canary(
    settings: Settings, inputs: Inputs, choose: Choose | None = None, provider: PolicyProvider | None = None
) -> Iterator[tuple[Scorer, Background, ExpectedPlacing, ShapedPods]]:
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
