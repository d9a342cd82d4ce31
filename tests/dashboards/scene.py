"""A scene: series over time, and what an alert makes of them.

Figures are one sample a minute from time 0 on, and a scene is looked at after `at` minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.dashboards.promtool_tests import Series, series

INFO, WARNING, CRITICAL = "info", "warning", "critical"
HOUR, DAY = 3600, 86400


@dataclass(frozen=True, slots=True)
class Scene:
    """Summaries by severity of what fires, {} = nothing.

    at        : minutes
    labels    : of the alert beside name and severity; None = the job of the first series
    elsewhere : series of another cluster, in which nothing is wrong
    """

    alert: str
    about: str
    given: tuple[Series, ...]
    fires: Mapping[str, str] = field(default_factory=dict)
    at: int = 20
    labels: Mapping[str, str] | None = None
    elsewhere: tuple[Series, ...] = ()

    def alert_labels(self) -> dict[str, str]:
        """Those that are expected."""
        return {"job": self.given[0].labels["job"]} if self.labels is None else dict(self.labels)


def steady(name: str, value: float, /, **labels: str) -> Series:
    """The same for two and a half hours."""
    return series(name, f"{value!r}+0x150", **labels)
