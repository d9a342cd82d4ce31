"""What became of pods that our gate held, and of those that prefer nodes, for /metrics. Whether advice was followed:
placement/decisions/decision_reports.py."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from advisor.advice_binder import AdviceFigures
from advisor.followed_advice import CanaryOutcome, Following, NominationTrust
from advisor.pods_waiting_for_advice import GatedPods
from advisor.preferred_pods import PreferenceFigures, PreferenceOutcome
from advisor.quota_gate import QuotaGate
from advisor.releases_without_advice import Outcome, Releases

_FOLLOWED: Final = {
    NominationTrust.UNKNOWN: nan,
    NominationTrust.FOLLOWED: 1.0,
    NominationTrust.DOUBTED: 0.5,
    NominationTrust.IGNORED: 0.0,
}


class AdviceCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(
        self, gated: GatedPods, releases: Releases, figures: AdviceFigures, quota_gate: QuotaGate | None = None
    ) -> None:
        self._gated, self._releases, self._figures, self._quota_gate = gated, releases, figures, quota_gate

    def collect(self) -> Iterator[Metric]:
        pods = CounterMetricFamily(
            "forecast_advice_pods",
            "Pods whose gate this replica removed: with a nomination (advised), with preferred node affinity because "
            "nominations are not followed (preferred), or without advice because no node passed the filters (no_node), "
            "none was named in time (overdue), none could have been (too_many), there was no usable forecast "
            "(no_forecast), or the advisor shut down and no other replica led (ending).",
            labels=["outcome"],
        )
        pods.add_metric(["advised"], self._figures.advised)
        pods.add_metric(["preferred"], self._figures.preferred)
        for outcome in Outcome:
            pods.add_metric([outcome.value], self._releases.released[outcome])
        yield pods
        yield CounterMetricFamily(
            "forecast_advice_withdrawn",
            "Nominations taken back because kube-scheduler found no place for the pod.",
            self._figures.withdrawn,
        )
        by_quota = (lambda uid: False) if self._quota_gate is None else self._quota_gate.keeps
        yield GaugeMetricFamily("forecast_gated_pods", "Pods that our gate alone holds.", len(self._gated))
        yield GaugeMetricFamily(
            "forecast_gated_by_quota_pods",
            "Of these, pods that wait because the quota of their tenant does not admit them.",
            self._gated.number(by_quota),
        )
        yield GaugeMetricFamily(
            "forecast_gated_longest_seconds",
            "Time for which our gate has held a pod longest that waits for no quota.",
            self._gated.longest(by_quota),
        )


class PreferenceCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, figures: PreferenceFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        asked = CounterMetricFamily(
            "forecast_preferences",
            "Questions of the webhook which nodes a new pod prefers: answered with nodes (preferred), or with none "
            "because no node passed the filters (no_node), there was no usable forecast (no_forecast) or the pod had "
            "opted out (opted_out), or not answered in time (late).",
            labels=["outcome"],
        )
        for outcome in PreferenceOutcome:
            asked.add_metric([outcome.value], self._figures.asked[outcome])
        yield asked
        charges = CounterMetricFamily(
            "forecast_preference_charges",
            "Pods that were reckoned with before their creation: those that came, and those that did not.",
            labels=["outcome"],
        )
        charges.add_metric(["came"], self._figures.came)
        charges.add_metric(["never_came"], self._figures.never_came)
        yield charges


class FollowingCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, following: Following) -> None:
        self._following = following

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "forecast_nominations_followed",
            "Whether kube-scheduler follows nominations: 1 = it does, 0.5 = pods or a canary went elsewhere for no "
            "reason that is known, 0 = it does not, and held pods prefer nodes, NaN = before the first canary.",
            _FOLLOWED[self._following.state],
        )
        canaries = CounterMetricFamily(
            "forecast_canaries",
            "Pods that were nominated to their second-best node to see whether nominations are followed: they went "
            "there (followed) or elsewhere, the API server did not store the nomination (refused), or the pod says "
            "nothing (unclear), as a filter kept it away or it was not bound within a minute. Refused nominations of "
            "other pods count, too.",
            labels=["outcome"],
        )
        for outcome in CanaryOutcome:
            canaries.add_metric([outcome.value], self._following.canaries[outcome])
        yield canaries
