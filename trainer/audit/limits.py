"""Services that limits hold back: what they would use without is not in the history."""

from __future__ import annotations

from typing import Final

import numpy as np

from forecast.hidden_demand import LEAST_SHARE, RECENT_DAYS, hidden_demand
from forecast.resources import CPU, MEMORY, RESOURCES
from trainer.audit.finding import AuditEvidence, Finding, FindingKind, service_finding

_ADVICE: Final = (
    "raise or remove limits.cpu of these and keep requests.cpu; raise limits.memory, or mend the leak. Until then "
    "forecast-scheduler requests recommends no less than what was seen"
)


def hidden_demand_of_services(evidence: AuditEvidence) -> Finding | None:
    """Finds services that were throttled in their peak half hours, or OOM-killed."""
    found = hidden_demand(evidence.history)
    touched = np.zeros((len(evidence.history.services), len(RESOURCES)), dtype=np.bool_)
    touched[:, [CPU, MEMORY]] = found.marked
    return service_finding(
        FindingKind.HIDDEN_DEMAND,
        evidence,
        touched,
        what=f"{{n}} were throttled in {100 * LEAST_SHARE:g} % of their peak half hours or more, or OOM-killed, in the "
        f"last {RECENT_DAYS} days: their usage is less than their demand",
        advice=_ADVICE,
        detail=lambda s, _: "; ".join(found.words(s)),
    )
