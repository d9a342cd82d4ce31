"""Prometheus as a source of history, one UTC day at a time.

    check           can this server be read, is the clock right, is everything there that is needed
    days_with_data  which days the server still has
    read_day        one day as the tables of docs/understand/history-layout.md

How a day is read is in `day_reading`; nothing is kept between days, so memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from base.errors import InputError
from base.progress import Progress, silent
from trainer.prometheus.clusters import check_choice, check_clusters, kube_system_created
from trainer.prometheus.day_reading import read_day
from trainer.prometheus.day_tables import DayTables, Remark
from trainer.prometheus.http_answer import TooManySamples
from trainer.prometheus.inventory import ServerInventory, take_inventory
from trainer.prometheus.log_source import LOG_METRICS
from trainer.prometheus.node_names import node_names, pod_names
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.queries import fill, in_every_shape, is_default
from trainer.prometheus.query_times import DayGrid
from trainer.prometheus.recording_rules import NODE_USAGE, POD_INFO, POD_USAGE

_MOST_SKEW_SECONDS = 60
_HOUR = 3600
_CADVISOR = "the kubelet's cAdvisor endpoint /metrics/cadvisor"
_BROUGHT_BY = {
    "pod_cpu": _CADVISOR,
    "pod_memory": _CADVISOR,
    "pod_disk": _CADVISOR,
    "pod_network": _CADVISOR,
    **dict.fromkeys(("node_cpu", "node_memory", "node_disk", "node_network"), "node-exporter"),
    "node_capacity": "kube-state-metrics",
}
"""Which exporter answers a query. Owners, requests and addresses are left out: a cluster may have none."""
_NEEDED = ("pod_cpu", "pod_memory")
_OVERWRITTEN = (
    'group by (job) ({__name__=~"kube_pod_info|kube_pod_container_resource_requests|kube_node_info|'
    'kube_node_status_capacity",exported_{label}!=""})'
)
_DAYS_AT_ONCE = 7
_CHECKED = ("pod_cpu", "pod_memory", "pod_disk", "pod_network", "pod_log")
_CHECKED_NODES = ("node_cpu", "node_memory", "node_disk", "node_network", "node_log")


class PrometheusSource:
    """Reads days of history from one server."""

    def __init__(self, connection: PrometheusConnection, options: SourceOptions | None = None) -> None:
        self._connection, self.options = connection, options or SourceOptions()

    @property
    def url(self) -> str:
        return self._connection.url

    def check(self, now: datetime) -> tuple[str, ...]:
        """Raise InputError with one sentence if this server cannot be the source; now: our clock.

        Returns remarks: queries that found nothing, and what that means.
        """
        self._check_clock(now)
        queries = self.options.templates
        at = self._last_data("pod_info", queries.pod_info, now)
        if at is None and self.options.recording_rules:
            at = self._last_data("pod_info", POD_INFO, now)
        if at is None:
            check_choice(self._connection, now)
            self._explain_no_pods(now)
        assert at is not None
        self._check_own_labels(at)
        check_clusters(self._connection, at)
        answers = set()
        for name in (*_CHECKED, *_CHECKED_NODES):
            if not (template := getattr(queries, name)):
                continue
            ours = is_default(
                queries, name
            )  # we know its labels: whether it answers is enough, at 100,000 pods as well
            if labels := self._labels(name, f"count({template})" if ours else template, at):
                if not ours:
                    (pod_names if name in _CHECKED else node_names)(name, labels)
                answers.add(name)
        self._check_log_source(now)
        return self._remarks(at, now, answers)

    def kube_system_created(self, now: datetime) -> int | None:
        """When the cluster was made, in unix seconds; None = the server does not say."""
        return kube_system_created(self._connection, now)

    def days_with_data(self, first: date, now: datetime) -> tuple[date, ...]:
        """UTC days from `first` on of which the server lists pods, the current one included."""
        step = timedelta(hours=1)
        start = datetime.combine(first, time(), UTC) + step
        days: set[date] = set()
        templates = [("pod_info", self.options.templates.pod_info)]
        if self.options.recording_rules:
            templates.append(("pod_info", POD_INFO))
        for name, template in templates:
            at = start
            while at <= now:
                end = min(now, at + timedelta(days=_DAYS_AT_ONCE) - step)
                # A value at T is about the time before T: midnight belongs to the day that ends.
                days.update(datetime.fromtimestamp(t - 1, UTC).date() for t in self._counted(name, template, at, end))
                at += timedelta(days=_DAYS_AT_ONCE)
        return tuple(sorted(days))

    def inventory(self, now: datetime, progress: Progress = silent) -> ServerInventory:
        """What the server has and how the last minutes balance; raises InputError where they cannot be read.

        Where no pod is listed now, those of the last hour are looked at in which there were some, and a remark says so.
        """
        query = self.options.templates.pod_info
        newest = now if self._labels("pod_info", f"count({query})", now) else self._last_data("pod_info", query, now)
        if newest is None:
            self._explain_no_pods(now)
        assert newest is not None
        inventory = take_inventory(self._connection, self.options, newest, progress)
        if newest == now:
            return inventory
        text = (
            f"no pod is listed at {now:%H:%M} UTC: is kube-state-metrics still scraped? What follows is of "
            f"{newest:%Y-%m-%d %H:%M} UTC"
        )
        return replace(inventory, remarks=(Remark("nothing new", text), *inventory.remarks))

    def read_day(self, day: date, until: datetime, progress: Progress = silent) -> DayTables:
        """One UTC day, or the part of it before `until`. Raises InputError; nothing is kept on failure."""
        grid = DayGrid.of(day, until, self.options.step_seconds)
        return read_day(self._connection, self.options, grid, progress)

    def _check_clock(self, now: datetime) -> None:
        try:
            told = self._connection.instant("server time", "vector(time())").values
        except TooManySamples as error:
            raise InputError(
                f"{self.url} refuses even the query for its time ({error.found}): look at its log"
            ) from error
        try:
            server = datetime.fromtimestamp(told[0], UTC)
        except (LookupError, ValueError, OverflowError) as error:
            raise InputError(f"{self.url} does not answer the query for its time: is it a Prometheus API?") from error
        skew = abs((server - now).total_seconds())
        if skew > _MOST_SKEW_SECONDS:
            raise InputError(
                f"the clocks differ by {skew:,.0f} s: the server says {server:%Y-%m-%d %H:%M:%S} UTC, we say "
                f"{now.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC; set the one that is wrong (NTP)"
            )

    def _check_own_labels(self, at: datetime) -> None:
        """Raise InputError where a scrape has put its target's labels over those of the objects themselves."""
        if not is_default(self.options.templates, "pod_info"):
            return
        for label in ("namespace", "pod", "node"):
            try:
                found = self._connection.instant("pod_info", _OVERWRITTEN.replace("{label}", label), at)
            except TooManySamples:
                continue
            if found.labels:
                job = found.labels[0].get("job", "kube-state-metrics")
                raise InputError(
                    f"the scrape of kube-state-metrics (job {job}) overwrites the label {label}, the object's own is "
                    f"exported_{label}: set honorLabels: true on it"
                )

    def _check_log_source(self, now: datetime) -> None:
        source, queries = self.options.log_source, self.options.templates
        metric = LOG_METRICS.get(source)
        if metric is None or queries.pod_log or queries.node_log:
            return
        known = [metric]
        if self.options.recording_rules:  # the counters may be gone where their records are kept
            known += [f'{POD_USAGE}{{resource="log"}}', f'{NODE_USAGE}{{resource="log"}}']
        if any(self._last_data("log source", each, now) for each in known):
            return
        raise InputError(
            f"{self.url} has no {metric} within the last day, which prometheus.log_source {source.value} counts: "
            "scrape that collector, or choose another source, or none"
        )

    def _remarks(self, at: datetime, now: datetime, answers: Collection[str]) -> tuple[str, ...]:
        """Queries that find nothing; InputError where there is no going without.

        at : when pods were there last. answers: the queries that have answered already
        """
        remarks = []
        for name, brought_by in _BROUGHT_BY.items():
            template = getattr(self.options.templates, name)
            if (
                not template
                or name in answers
                or self._found(name, in_every_shape(self.options.templates, name), at, now)
            ):
                continue
            if not is_default(self.options.templates, name):
                raise InputError(
                    f"query {name} of the settings found nothing on {self.url} within the last day: correct "
                    f"prometheus.queries.{name}, or set it to '' to go without"
                )
            if name in _NEEDED:
                raise InputError(
                    f"{self.url} has no usage of containers within the last day (query {name} found nothing): scrape "
                    f"{brought_by}, or raise prometheus.step to at least two scrape intervals"
                )
            remarks.append(f"query {name} found nothing within the last day, it is not measured: scrape {brought_by}")
        return tuple(remarks)

    def _found(self, name: str, template: str, at: datetime, now: datetime) -> bool:
        """Whether a query has answered within the last day, or its records have."""
        kind, _, resource = name.partition("_")
        queries = [template]
        if self.options.recording_rules and name in (*_CHECKED, *_CHECKED_NODES):
            queries.append(f'{POD_USAGE if kind == "pod" else NODE_USAGE}{{resource="{resource}"}}')
        for query in queries:
            counted = f"count({fill(query, window_seconds=self.options.step_seconds)})"
            try:
                if self._connection.instant(name, counted, at).labels or self._last_data(name, query, now):
                    return True
            except TooManySamples:
                return True
        return False

    def _last_data(self, name: str, template: str, now: datetime) -> datetime | None:
        """When within the last day a query answered last, looked at hourly; None = never."""
        times = self._counted(name, template, now - timedelta(days=1), now)
        return datetime.fromtimestamp(max(times), UTC) if times else None

    def _explain_no_pods(self, now: datetime) -> None:
        for metric in ("kube_pod_info", "kube_pod_status_phase"):
            if self._last_data("pod_info", metric, now) is None:
                raise InputError(
                    f"{self.url} has no {metric} within the last day: deploy kube-state-metrics and scrape it (it is "
                    "part of kube-prometheus), or give prometheus.queries.pod_info"
                )
        raise InputError(
            f"{self.url} has kube_pod_info and kube_pod_status_phase, yet query pod_info found no running pod within "
            "the last day: set honorLabels: true on the scrape of kube-state-metrics, or correct "
            "prometheus.queries.pod_info"
        )

    def _labels(self, name: str, template: str, at: datetime) -> Sequence[Mapping[str, str]]:
        try:
            return self._connection.instant(name, fill(template, window_seconds=self.options.step_seconds), at).labels
        except TooManySamples:
            return []  # read_day asks in pieces and checks the labels again

    def _counted(self, name: str, template: str, start: datetime, end: datetime) -> list[float]:
        """Unix seconds, an hour apart, at which a query answers; in halves where the server finds it too much."""
        query = fill(template, window_seconds=self.options.step_seconds)
        try:
            found = self._connection.range(name, f"count({query})", start, end, _HOUR)
            return [start.timestamp() + _HOUR * tick for tick in found.tick.tolist()]
        except TooManySamples as error:
            hours = int((end - start).total_seconds()) // _HOUR
            if hours < 1:
                raise InputError(
                    f"the server refuses even to count query {name} at one time ({error.found}): raise its "
                    "query.max-samples"
                ) from error
            middle = start + timedelta(hours=hours // 2)
            return [
                *self._counted(name, template, start, middle),
                *self._counted(name, template, middle + timedelta(hours=1), end),
            ]
