"""Settings of the scorer's HTTP service, in the section `scorer`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from base.setting_group import SettingGroup
from serving.server_settings import ServingOptions


class ScorerServiceOptions(SettingGroup):
    """Who may ask, how much at a time, and which metrics are exported."""

    serving: ServingOptions = Field(default_factory=ServingOptions)

    deadline: ClassVar[float] = 10.0
    """Seconds for the body of a request to arrive, and again for the answer. It is answered by then, if only with
    503."""

    max_nodes: ClassVar[int] = 50_000
    """Node names in one request: ten times the largest cluster that Kubernetes is tested with."""

    node_metrics: bool = True
    """Export the series of each node: 55 per node with five resources."""

    service_metrics: bool = True
    """Export the series of each service: 10 per service with five resources."""

    report: Path | None = None
    """Page that `report --html` writes, offered at /report with a link on the scorer's page; read at every request
    (docs/operate/dashboards.md)."""

    @field_validator("report")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()
