"""A scorer made up for unit tests of the HTTP service and for looking at its page: nodes that peak in the evening."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np

from base.arrays import Floats
from base.errors import InputError, UnknownName
from cluster.degradation import Level
from cluster.table_check import SelfCheck
from cluster.timed_lock import LockCollector, TimedLock
from forecast.model_findings import ModelFinding
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer import answers
from scorer.judgement import Judge
from scorer.scorer_api import NodeFigures, Scored
from testing.objects import pod_info


def pod_named(namespace: str, name: str) -> PodInfo:
    return pod_info(name, uid=f"{namespace}-{name}", namespace=namespace, requests={"cpu": 0.5, "memory": 2.0**30})


NOW = datetime(2026, 3, 11, 14, 10, tzinfo=UTC)  # a Wednesday
RESOURCES = {
    "cpu": ("cores", 32.0),
    "memory": ("bytes", 128 * 2.0**30),
    "disk": ("bytes/s", 400e6),
    "network": ("bytes/s", 1250e6),
    "log": ("bytes/s", 20e6),
}
SLOTS_BEFORE, SLOTS = 96, 96 + 336
SERVICES = ["shop/Deployment/cart", "shop/Deployment/search", "shop/StatefulSet/db", "batch/CronJob/report"]


class FakeScorer:
    """Implements ScorerApi. `fail` is called at the start of every question, to raise or to wait.

    odd_name : an extra service (and, with node_name, the first node's name) that a page must not take for markup
    """

    def __init__(self, n_nodes: int = 50, *, node_name: str | None = None, odd_name: str | None = None) -> None:
        self.names = [f"node-{i + 1:02d}" for i in range(n_nodes)]
        if node_name is not None:
            self.names[0] = node_name
        self.extra_services = [odd_name] if odd_name else []
        self.ready, self.level = True, Level.FRESH
        self.reasons: tuple[str, ...] = ()
        self.metrics_age: float | None = 25.0
        self.with_model = True
        self.findings: tuple[ModelFinding, ...] = ()
        self.drift: tuple[str, ...] = ()
        self.last_check: SelfCheck | None = None
        self.fail: Callable[[], None] = lambda: None
        self.asked: list[PodInfo] = []
        self.charged: list[tuple[str, str, float]] = []
        rng = np.random.default_rng(5)
        self.size = rng.uniform(0.35, 0.75, n_nodes)  # share of CPU at the evening's height
        self.size[:3] = (1.04, 0.93, 0.86)[: min(3, n_nodes)]
        self.phase = rng.normal(0, 1.2, n_nodes)
        self.noise = rng.normal(0, 0.03, (n_nodes, SLOTS))
        today = NOW.replace(minute=0) - timedelta(hours=NOW.hour)
        first_slot = int((NOW - today).total_seconds() // 1800) - SLOTS_BEFORE
        self.starts = tuple(today + timedelta(minutes=30 * (first_slot + i)) for i in range(SLOTS))

    def share(self, resource: str = "cpu") -> Floats:
        """(n_nodes, SLOTS) expected share of capacity."""
        hours = np.array([s.hour + s.minute / 60 for s in self.starts])
        weekend = np.array([s.weekday() >= 5 for s in self.starts])
        after = (hours[None, :] - 20.3 - self.phase[:, None] + 12) % 24 - 12  # hours after the evening's height
        evening = np.exp(-(after**2) / 9)  # (n_nodes, SLOTS)
        noon = 0.4 * np.exp(-((hours - 13) ** 2) / 14)
        shape = np.maximum(evening, noon) * np.where(weekend, 0.8, 1.0)
        flat = {"cpu": 0.12, "memory": 0.6, "disk": 0.2, "network": 0.1, "log": 0.15}[resource]
        part = {"cpu": 1.0, "memory": 0.3, "disk": 0.5, "network": 0.7, "log": 0.8}[resource]
        return np.asarray(self.size[:, None] * (flat + (1 - flat) * part * shape))

    def score(
        self, pod: PodInfo, nodes: Sequence[str] | None = None, weights: Mapping[str, float] | None = None
    ) -> Scored:
        self.fail()
        self.asked.append(pod)
        for name in weights or {}:
            if name != "predicted_peak":
                raise UnknownName("score", name, ["predicted_peak"])
        asked = list(self.names if nodes is None else nodes)
        known = {name: 100 * (1 - size / 1.1) for name, size in zip(self.names, self.size, strict=True)}
        return Scored(
            nodes=asked,
            scores=np.array([known.get(name, 50.0) for name in asked], dtype=np.float64),
            ranking=np.array([2 * known.get(name, 50.0) - 100 for name in asked], dtype=np.float64),
            level=self.level,
            reasons=self.reasons,
            model_version="20260311-0200",
            weights=dict(weights or {"predicted_peak": 1.0}),
            unknown_nodes=tuple(name for name in asked if name not in known),
            policy="settings",
        )

    def charge_provisionally(self, pod: PodInfo, node: str, seconds: float) -> bool:
        self.fail()
        self.charged.append((pod.name, node, seconds))
        return node in self.names

    def explain(
        self,
        pod: PodInfo,
        nodes: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        *,
        top: int = 10,
        judge: Judge | None = None,
    ) -> answers.Explanation:
        scored = self.score(pod, nodes, weights)
        order = np.argsort(-scored.scores, kind="stable")
        return answers.Explanation(
            pod=f"{pod.namespace}/{pod.name}",
            service="shop/Deployment/cart",
            now=NOW,
            service_known=True,
            nodes=tuple(
                answers.ExplainedNode(
                    node=scored.nodes[i],
                    score=float(scored.scores[i]),
                    contributions=(
                        answers.ExplainedScore("predicted_peak", float(scored.scores[i]), 1.0, float(scored.scores[i])),
                    ),
                    level=self.level,
                    measured_seconds_ago=12.0,
                    peak_before=self._peak(0, 0),
                    peak_with=self._peak(0, 0, extra=0.5),
                )
                for i in order[:top]
            ),
            n_nodes=len(scored.nodes),
            runner_up=scored.nodes[order[1]] if len(order) > 1 else None,
            margin=float(scored.scores[order[0]] - scored.scores[order[1]]) if len(order) > 1 else None,
            level=self.level,
            reasons=self.reasons,
            model_version="20260311-0200",
            model_age_seconds=43_800.0,
            metrics_age_seconds=self.metrics_age,
            virtual_request={"cpu": 0.31, "memory": 9e8},
            virtual_request_source="profile",
        )

    def find_pod(self, namespace: str, name: str) -> PodInfo:
        self.fail()
        if (namespace, name) != ("shop", "cart-1"):
            raise UnknownName("pod", f"{namespace}/{name}", ["shop/cart-1"])
        return pod_named(namespace, name)

    def nodes(self, *, by_peak: bool = False, top: int | None = None, day: date | None = None) -> answers.Nodes:
        self.fail()
        number = self._day_number(day)
        listed = [
            answers.NodeSummary(
                name=name,
                pods=12 + i % 7,
                ready=i != 7,
                level=self.level,
                measured_seconds_ago=None if self.metrics_age is None else 12.0,
                today=self._peak(i, 0) if self.with_model else None,
                tomorrow=self._peak(i, 1) if self.with_model else None,
                peak=self._peak(i, number) if self.with_model else None,
            )
            for i, name in enumerate(self.names)
        ]
        if by_peak and self.with_model:
            listed.sort(key=lambda one: -(one.peak.share or 0.0) if one.peak else 0.0)
        hours = "next 24 h" if day is None else day.isoformat()
        return answers.Nodes(listed[:top], len(listed), hours if self.with_model else None, NOW)

    def node_report(self, node: str, *, day: date | None = None, top: int = 5) -> answers.NodeReport:
        self.fail()
        if node not in self.names:
            raise UnknownName("node", node, self.names)
        number = self._day_number(day)
        peak, other = self._peak(self.names.index(node), number), self._peak(0, number)
        lower = self._peak(self.names.index(node), number, extra=-1.0)
        pods = [
            answers.PodOnNode("shop/cart-1", SERVICES[0], 1.0, answers.BetterNode(self.names[-1], lower, other, other)),
            answers.PodOnNode("shop/cart-2", SERVICES[0], 0.5, None, "no other node has room for its requests"),
        ]
        return answers.NodeReport(
            name=node,
            peak_hours="next 24 h" if day is None else day.isoformat(),
            now=NOW,
            pods=12,
            ready=True,
            level=self.level,
            model_version="v1",
            peak=peak if self.with_model else None,
            besides_pods=0.25,
            services=(answers.ServiceOnNode(SERVICES[0], 2, 1.5, 0.75),),
            largest=tuple(pods[:top]),
        )

    def services(self) -> tuple[answers.ServiceSummary, ...]:
        self.fail()
        return tuple(
            answers.ServiceSummary(namespace, kind, name, 8 + i, known=i != 3, autoscaled=i == 1)
            for i, key in enumerate(SERVICES + self.extra_services)
            for namespace, kind, name in [key.split("/")]
        )

    def heat_map(self, *, resource: str | None = None, top: int = 100) -> answers.HeatMap:
        self.fail()
        if resource is not None and resource not in RESOURCES:
            raise UnknownName("resource", resource, list(RESOURCES))
        shares = [self.share(r) for r in ([resource] if resource else RESOURCES)]
        midnight = SLOTS_BEFORE - 2 * NOW.hour  # the week starts with today's first hour, as the real one's does
        week = np.max(shares, axis=0)[:, midnight : midnight + 336]
        hourly = week.reshape(len(self.names), -1, 2).max(axis=2)  # (n_nodes, n_hours)
        order = np.argsort(-hourly[:, NOW.hour :].max(axis=1), kind="stable")[:top]
        return answers.HeatMap(
            resource=resource,
            hours=self.starts[midnight : midnight + 336 : 2],
            nodes=tuple(self.names[i] for i in order),
            share=hourly[order],
            n_nodes=len(self.names),
            assumed=(resource == "disk",) * len(order),
        )

    def node_forecast(self, node: str) -> answers.UsageForecast:
        self.fail()
        if node not in self.names:
            raise UnknownName("node", node, self.names)
        i = self.names.index(node)
        curves = {r: self.share(r)[i] * RESOURCES[r][1] for r in RESOURCES}
        return self._forecast(node, curves, {r: RESOURCES[r][1] for r in RESOURCES}, i)

    def service_forecast(self, key: ServiceKey) -> answers.UsageForecast:
        self.fail()
        if str(key) not in SERVICES + self.extra_services:
            raise UnknownName("service", str(key), SERVICES)
        curves = {r: self.share(r)[-1] * RESOURCES[r][1] / 3 for r in RESOURCES}
        return self._forecast(str(key), curves, dict.fromkeys(RESOURCES), len(self.names) - 1)

    def _forecast(
        self, name: str, curves: Mapping[str, Floats], capacity: Mapping[str, float | None], row: int
    ) -> answers.UsageForecast:
        made = []
        for resource, expected in curves.items():
            actual = np.where(np.arange(SLOTS) < SLOTS_BEFORE, expected * (1 + 3 * self.noise[row]), np.nan)
            actual[10:14] = np.nan  # a gap in the measurements
            bound = expected * 1.18
            days = []
            for day in sorted({s.date() for s in self.starts}):
                slots = [k for k, s in enumerate(self.starts) if s.date() == day]
                k = max(slots, key=lambda k: expected[k])
                days.append(answers.DayPeak(day, float(expected[k]), float(bound[k]), self.starts[k]))
            made.append(
                answers.Curve(
                    resource=resource,
                    unit=RESOURCES[resource][0],
                    capacity=capacity[resource],
                    expected=expected,
                    bound=bound if resource != "log" else None,
                    actual=actual if resource != "log" else None,
                    days=tuple(days),
                    assumed=resource == "disk" and capacity[resource] is not None,
                )
            )
        return answers.UsageForecast(
            name=name,
            starts=self.starts,
            curves=tuple(made),
            level=self.level,
            model_version="20260311-0200",
            pods=14,
            notes=("log is not measured here: predicted only", "policy batch (rule 2: reports)"),
        )

    def virtual_available(self) -> answers.VirtualAvailability:
        self.fail()
        capacity = np.tile([c for _, c in RESOURCES.values()], (len(self.names), 1))
        available = capacity * (1 - self.size[:, None] / 2)
        available[0, 4] = np.nan
        assumed = np.tile([name == "disk" for name in RESOURCES], (len(self.names), 1))
        return answers.VirtualAvailability(
            tuple(self.names), tuple(RESOURCES), available, capacity, assumed, capacity * 0.01, 3, self.metrics_age
        )

    def node_figures(self) -> NodeFigures:
        self.fail()
        n, k = len(self.names), len(RESOURCES)
        usage = np.outer(self.size, [c for _, c in RESOURCES.values()])[:, :, None] * np.array([0.6, 0.8])
        peak = np.repeat(usage[:, :, :, None] * 1.5, 2, axis=3)
        return NodeFigures(
            nodes=tuple(self.names),
            resources=tuple(RESOURCES),
            usage=usage,
            model_usage=usage / 2,
            peak=peak,
            peak_at=np.full((n, k, 2), NOW.timestamp()),
            frozen_peak=np.full((n, k, 2, 2), np.nan),
            available=self.virtual_available().available,
            capacity=np.where(np.arange(k) == 4, np.nan, self.virtual_available().capacity),
            assumed=self.virtual_available().assumed,
            level=np.full(n, int(self.level), dtype=np.int64),
            shadow_usage=usage,
            shadow_peak=peak,
        )

    def service_peaks(self) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
        self.fail()
        return tuple(SERVICES), tuple(RESOURCES), np.full((len(SERVICES), len(RESOURCES), 2), 0.25)

    def backtest_loss(self) -> Mapping[tuple[str, str], float]:
        return {("cpu", "0.5"): 0.061, ("cpu", "0.95"): 0.021} if self.with_model else {}

    def status(self) -> answers.ScorerStatus:
        model = answers.ModelStatus(
            "20260311-0200", NOW.date(), 43_800.0, 4, len(self.names), "UTC", findings=self.findings
        )
        return answers.ScorerStatus(
            ready=self.ready,
            not_ready_because=None if self.ready else "pods have not been listed yet",
            level=self.level,
            reasons=self.reasons,
            now=NOW,
            model=model if self.with_model else None,
            refused_model=None,
            nodes=len(self.names),
            pods=612,
            services=len(SERVICES),
            unknown_service_pods=9,
            state_age_seconds=2.0,
            metrics_age_seconds=self.metrics_age,
            measured_nodes=len(self.names) if self.metrics_age is not None else 0,
            sources={"cluster": "file sample.json", "metrics": "http://prometheus:9090"},
            last_check=self.last_check,
        )

    def lock_collector(self) -> LockCollector:
        return LockCollector(TimedLock(None))

    def self_check(self) -> SelfCheck:
        self.fail()
        self.last_check = SelfCheck(not self.drift, NOW, len(self.names), 612, self.drift)
        return self.last_check

    def _day_number(self, day: date | None) -> int:
        number = 0 if day is None else (day - NOW.date()).days
        if not 0 <= number < 7:
            raise InputError(f"there is no forecast of {day}")
        return number

    def _peak(self, row: int, day: int, extra: float = 0.0) -> answers.Peak:
        wanted = NOW.date() + timedelta(days=day)
        slots = [k for k, s in enumerate(self.starts) if s.date() == wanted]
        expected = self.share()[row]
        k = max(slots, key=lambda k: expected[k])
        value = float(expected[k] * 32 + extra)
        return answers.Peak("cpu", "cores", value, value * 1.18, 32.0, value / 32, self.starts[k])
