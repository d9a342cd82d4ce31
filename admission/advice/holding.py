"""Holds new pods that ask for advice, while somebody is there to advise on them and this process could release them."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.advice.advisor_lease import AdvisorLease
from admission.advice.asked_advice import ByPolicy, gates_with_ours
from admission.advice.second_hands import SecondHands
from admission.webhook_settings import AdviceGateOptions
from base.excluded import ExcludedOptions

logger = logging.getLogger(__name__)


class NotHeld(StrEnum):
    """Why new pods are created without waiting for advice."""

    NO_ADVISOR = "no_advisor"
    CANNOT_RELEASE = "cannot_release"


_IN_WORDS: Final = {
    NotHeld.NO_ADVISOR: "no advisor is alive",
    NotHeld.CANNOT_RELEASE: "this process does not see which pods are held or wait for a quota, or may not remove "
    "gates (grant list, watch and patch on pods, list and watch on elasticquotas)",
}


class Holding(Collector):
    """Implements GatesOf. For any thread; `report` is to be called now and then by one."""

    def __init__(
        self,
        options: AdviceGateOptions,
        lease: AdvisorLease,
        hands: SecondHands,
        excluded: ExcludedOptions,
        by_policy: ByPolicy = lambda pod: None,
    ) -> None:
        self._excluded = excluded
        self._options, self._lease, self._hands, self._by_policy = options, lease, hands, by_policy
        self._lock = threading.Lock()
        self._unadvised: Counter[NotHeld] = Counter()
        self._reported: NotHeld | None = None  # as the log has it
        self._counted = 0  # unadvised pods when it was last reported that pods are held

    def why_not(self) -> NotHeld | None:
        """Return why new pods are not held now; None = they are."""
        if not self._lease.is_alive():
            return NotHeld.NO_ADVISOR
        return None if self._hands.can_release() else NotHeld.CANNOT_RELEASE

    def __call__(
        self, pod: Mapping[str, Any], namespace: str, namespace_labels: Mapping[str, str] | None, *, dry_run: bool
    ) -> list[Any] | None:
        gates = gates_with_ours(pod, namespace, namespace_labels, self._options, self._excluded, self._by_policy)
        if gates is None or (why := self.why_not()) is None:
            return gates
        if not dry_run:
            with self._lock:
                self._unadvised[why] += 1
        return None

    def report(self) -> None:
        """Log when new pods are not held any more, and when they are again: how many came without advice."""
        why = self.why_not()
        if why is NotHeld.NO_ADVISOR and not self._lease.is_known():
            return  # none is installed
        with self._lock:
            total = self._unadvised.total()
            if why == self._reported:
                return
            n_missed, self._reported = total - self._counted, why
            if why is None:
                self._counted = total
        if why is None:
            logger.info("new pods are held for advice again", extra={"came_without_advice": n_missed})
        else:
            logger.warning("new pods are not held for advice", extra={"why": _IN_WORDS[why]})

    def abilities(self) -> dict[str, Any]:
        """Return what /readyz says of advice."""
        why = self.why_not()
        return {"holds_pods": why is None, "holds_none_because": why and _IN_WORDS[why]}

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "forecast_webhook_holds_pods",
            "1 while new pods that ask for advice are held for it: an advisor is alive, and this replica could release "
            "them.",
            float(self.why_not() is None),
        )
        pods = CounterMetricFamily(
            "forecast_webhook_unadvised_pods",
            "New pods that asked for advice and were created without: no advisor was alive (no_advisor), or this "
            "replica could not have released them (cannot_release).",
            labels=["because"],
        )
        for why in NotHeld:
            pods.add_metric([why.value], self._unadvised[why])
        yield pods
