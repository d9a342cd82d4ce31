"""An alert: what is wrong, for how long, how bad, and where to read what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Severity(Enum):
    """The words of kube-prometheus, whose Alertmanager routes and inhibits by them."""

    INFO = "info"  # for the record: kube-prometheus notifies of it only beside another alert of the namespace
    WARNING = "warning"  # look at it in working hours
    CRITICAL = "critical"  # look at it now


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule. An alert of two severities is two of them with the same name.

    expression  : PromQL; what it returns is what is wrong
    lasting     : how long it has to be so, a duration of Prometheus; "0m" = at once
    summary     : one line with the facts: {{ $labels.node }}, {{ $value }}
    description : what that means and where to look first; the runbook has the rest
    """

    name: str
    severity: Severity
    expression: str
    lasting: str
    summary: str
    description: str

    def rule(self, runbooks: str) -> dict[str, Any]:
        """As Prometheus wants it. runbooks: address of the page that has a section of the alert's name."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasting,
            "labels": {"severity": self.severity.value},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{runbooks}#{self.name.lower()}",
            },
        }
