"""The page docs/operate/alerts.md: for each alert its cause, what to do, commands, and where to read more."""

from __future__ import annotations

import re
import textwrap
from typing import Final

from dashboards.alerting.alert import Alert
from dashboards.alerting.rule_files import alert_groups

_HEADINGS: Final = {
    "forecast": "The forecast",
    "forecast-advice": "Advice and held pods",
    "forecast-scheduling": "Scheduling",
    "forecast-rebalancing": "Rebalancing",
    "forecast-autoscaling": "Autoscaling",
    "forecast-gpus-and-jobs": "GPUs and jobs",
    "forecast-tenants": "Tenants",
    "forecast-operating": "Operating",
}

_BEGINNING: Final = """\
# Alerts and their runbooks

Find the alert by its name. Its section has the cause, then what to do. `critical` is for now, `warning` for working
hours, `info` for the record. How to install the alerts, and what they need: [dashboards.md](dashboards.md#installing).

First in most cases:

```console
$ forecast-scheduler status                       # what is degraded, and what to do first
$ curl -s "$SCORER/v1/status"                     # or $SCHEDULER: degradation level and why, ages, what fails
$ kubectl -n forecast-scheduler get pods,events
```

`$SCORER`, `$SCHEDULER`, `$REBALANCER` and `$PROMETHEUS` are addresses ([http-api.md](../use/http-api.md)). Add
`-H "Authorization: Bearer $TOKEN"` for a service that asks for a token. The extender's logs and `/metrics` say the same
as `/v1/status`. `python -m dashboards` writes this page.

One cause raises one alert: what follows from it is silent for as long as it lasts. A part that never answered
Prometheus raises none.
"""


def runbook_page() -> str:
    """Return the page in Markdown, with the alerts' default thresholds."""
    lines = [_BEGINNING]
    for group, alerts in alert_groups().items():
        lines.append(f"## {_HEADINGS[group]}\n")
        by_name: dict[str, list[Alert]] = {}
        for alert in alerts:
            by_name.setdefault(alert.name, []).append(alert)
        lines += [_section(of_name) for of_name in by_name.values()]
    return "\n".join(lines)


def _section(alerts: list[Alert]) -> str:
    """Return the section of one name. Its rules differ by severity; ValueError: by action, commands or page, too."""
    ((action, commands, page),) = {(one.action, one.commands, one.page) for one in alerts}
    name = alerts[0].name
    descriptions = {one.description: one.severity.value for one in alerts}
    if len(descriptions) > 1:
        causes = [f"{severity.capitalize()}: {text[0].lower()}{text[1:]}" for text, severity in descriptions.items()]
    else:
        causes = [alerts[0].description]
    if page:
        file = page.partition("#")[0].rpartition("/")[2]
        action = f"{action.removesuffix('.')} ([{file}]({page}))."
    parts = [f"### {name}", *(_paragraph(text, name) for text in (" ".join(causes), action))]
    if commands:
        parts.append("```console\n" + "".join(f"$ {line}\n" for line in commands) + "```")
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str, of: str) -> str:
    """Return wrapped text in which names of other alerts are links."""
    linked = re.sub(rf"\b(?!{of}\b)(Forecast[A-Z]\w+)", lambda match: f"[{match[1]}](#{match[1].lower()})", text)
    return textwrap.fill(linked, 150, break_long_words=False, break_on_hyphens=False)
