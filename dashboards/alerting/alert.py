"""An alert: what is wrong, for how long, how bad, and where to read what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from trainer.prometheus.label_selectors import with_labels

_ASKED: Final = re.compile(r'printf (?:`([^`]*)`|"([^"]*)")')
"""A query in a template: {{ printf `query of %s` $labels.cluster | query }}."""


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
    description : cause and effect
    action      : what to look at and to do; Markdown without links, names of other alerts become links on the page
    commands    : command lines for the page, which a shell can run with the addresses that the page names
    page        : where to read more, as seen from docs/operate/
    """

    name: str
    severity: Severity
    expression: str
    lasting: str
    summary: str
    description: str
    action: str
    commands: tuple[str, ...] = ()
    page: str = ""

    def rule(self, runbooks: str, cluster: Mapping[str, str] | None = None) -> dict[str, Any]:
        """As Prometheus wants it. runbooks: address of the page that has a section of the alert's name.

        cluster : labels that queries in templates select; the expression gets them with those of all rules
        """
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasting,
            "labels": {"severity": self.severity.value},
            "annotations": {
                "summary": _of_cluster(self.summary, cluster or {}),
                "description": _of_cluster(self.description, cluster or {}),
                "action": self.action,
                "runbook_url": f"{runbooks}#{self.name.lower()}",
            },
        }


def _of_cluster(template: str, cluster: Mapping[str, str]) -> str:
    """The template, whose queries select the labels."""
    if not cluster:
        return template
    of_printf = {label: value.replace("%", "%%") for label, value in cluster.items()}

    def narrowed(match: re.Match[str]) -> str:
        query = with_labels(match[1] or match[2], of_printf)
        return 'printf "{}"'.format(query.replace("\\", "\\\\").replace('"', '\\"'))  # a string of Go

    return _ASKED.sub(narrowed, template)
