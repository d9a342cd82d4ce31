"""What a user of the dashboards selects, and how queries are narrowed to it.

"All" is the regex `.*`, which matches a missing label, too: a Prometheus of one cluster has no label `cluster`.
"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders.dashboard import CustomVariable, DatasourceVariable, QueryVariable
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableOption, VariableRefresh, VariableSort

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The Prometheus that is selected at the top of each dashboard."""

BY_CLUSTER: Final = "cluster"

Variable = QueryVariable | CustomVariable | DatasourceVariable

_SERIES: Final = {
    "cluster": ("forecast_ready", "Cluster", "External label of Prometheus; All where there is none."),
    "namespace": ("forecast_service_predicted_peak", "Namespace", "Of services."),
    "node": ("forecast_node_predicted_peak", "Node", "All, or those to be looked at."),
    "resource": ("forecast_node_predicted_peak", "Resource", "cpu, memory, disk, network, log."),
    "job": ("forecast_ready", "Process", "Prometheus' job of what runs: scorer, extender, schedule."),
    "pool": ("forecast_tide_capacity_gpus", "Pool", "GPUs of one model."),
    "profile": ("forecast_schedule_attempts_total", "Profile", "Scheduler name of the pods."),
}


def data_source() -> DatasourceVariable:
    """Which Prometheus, Thanos or Mimir is asked."""
    return DatasourceVariable("datasource").label("Data source").type("prometheus")


def variable(name: str) -> QueryVariable:
    """A label of our series; several values may be selected, and narrow by what was selected before it."""
    series, label, text = _SERIES[name]
    within = "" if name == BY_CLUSTER else where()
    return _of_series(name, f"label_values({series}{within}, {name})", label, text)


def own(name: str, query: str, label: str, text: str) -> QueryVariable:
    """Values of a label by any query."""
    return _of_series(name, query, label, text)


def top() -> CustomVariable:
    """How many nodes or services are shown where there may be thousands."""
    sizes = ("5", "10", "20", "50")
    options = [VariableOption(text=size, value=size, selected=size == sizes[0]) for size in sizes]
    return (
        CustomVariable("top")
        .label("Show top")
        .description("How many nodes or services, the highest first, where there may be thousands.")
        .values(",".join(sizes))
        .options(options)
        .current(options[0])
    )


def where(**labels: str) -> str:
    """Matchers in braces: the selected cluster, labels that are a variable ("$node"), and labels with one value."""
    parts = ['cluster=~"$cluster"']
    for label, value in labels.items():
        parts.append(f'{label}{"=~" if "$" in value or "|" in value else "="}"{value}"')
    return "{" + ",".join(parts) + "}"


def of_leader(series: str, leads: str = "forecast_leader") -> str:
    """Of the replica that schedules: the others follow the cluster and fill a queue of their own, too."""
    return f"{series} and on (cluster, job, instance) {leads}{where()} == 1"


def of_placing(series: str) -> str:
    """Of the replica that schedules; where replicas share the nodes, of all that own some."""
    leads, owns = f"forecast_leader{where()} == 1", f"forecast_shards_owned{where()} > 0"
    return f"{series} and on (cluster, job, instance) ({leads} or {owns})"


def _of_series(name: str, query: str, label: str, text: str) -> QueryVariable:
    every = VariableOption(text="All", value="$__all", selected=True)
    return (
        QueryVariable(name)
        .label(label)
        .description(text)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(every)
    )
