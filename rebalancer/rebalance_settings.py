"""Settings of the rebalancer: `rebalance`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, ClassVar

from pydantic import Field, field_validator

from base.local_hours import checked_hours
from base.setting_group import Duration, SettingGroup
from kube.leader_election.lease_options import LeaseOptions
from rebalancer.cooldown import CooldownOptions
from serving.server_settings import ServingOptions


@dataclass(frozen=True)
class PlanningOptions:
    """Which moves are worth it, and how hard the planner looks for them (docs/understand/benchmarks.md)."""

    least_gain: float = 0.5
    """Node half hours of expected heat that a move has to prevent beyond its cost: less is within the forecast's error.
    """
    guarded_margin: float = 0.15
    """No move makes a node hot that was not, even if its load is this part of the margin above the forecast.

    The margin is the forecast's upper bound less its mean. 0 trusts the mean, 1 the bound."""
    targets_looked_at: int = 24
    """Nodes that are looked at exactly for a pod, after a rough look at all."""
    exchanges_looked_at: int = 100
    """Pairs of moves that are looked at exactly for a node which single moves leave hot. 0 plans no pairs."""
    chains_looked_at: int = 60
    """Chains of up to four moves that are looked at for such a node. 0 plans no chains."""
    improvement_effort: float = 100
    """Second thoughts about a plan: million figures of pods to look at. 100 take a second or two.

    A plan that took more than a quarter of it is left as it is."""


class ExecutionOptions(SettingGroup):
    """How many pods move at a time, and how long a replacement may take."""

    parallel: int = Field(default=2, ge=1, le=50)
    """Moves under way at once; never two of one service."""

    ready_deadline: Duration = Field(default=600, gt=0, le=86_400)
    """Time from the pod's end until its replacement must be ready. Otherwise the plan starts no more moves."""

    pin: ClassVar[float] = 0.5
    """Seconds between the record of a move and the eviction: parts that place pods learn the target meanwhile."""

    retry: ClassVar[float] = 5.0
    """Seconds between two tries to evict a pod that a disruption budget protects."""

    refusal_deadline: ClassVar[float] = 300.0
    """Seconds for which an eviction is tried; then the move is `refused`."""

    max_elsewhere: ClassVar[int] = 2
    """Replacements on other nodes than planned after which the plan starts nothing more: it is no longer the plan."""

    keep_plans: ClassVar[int] = 30
    """Finished plans that are kept: a month of nights, of which the grades are read."""


class RebalanceMode(Enum):
    """What the rebalancer may do."""

    OFF = "off"
    SHADOW = "shadow"
    ON = "on"


class CostOptions(SettingGroup):
    """Which pods may move. What a move costs, in node half hours of heat, is the sum of the constants that apply."""

    owners: tuple[str, ...] = (
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "ReplicationController",
        "Rollout",
        "CloneSet",
        "Job",
        "CronJob",
    )
    """Kinds of owners that create an evicted pod again. Pods of other owners never move."""

    move_local_storage: bool = False
    """Also move pods with an emptyDir on disk or a hostPath, whose content is lost."""

    least_age: ClassVar[float] = 600.0
    """Seconds of age below which a pod never moves: a rollout may still be under way."""

    move: ClassVar[float] = 0.02
    """Every move costs this."""

    startup: ClassVar[float] = 0.5
    """Of each half hour until the replacement is ready, as learned of the service."""

    default_startup: ClassVar[float] = 120.0
    """Seconds, of a service of which no start has been seen."""

    share: ClassVar[float] = 0.2
    """Of a service that is gone as a whole meanwhile. Of n replicas one is gone: it costs 1/n of this."""

    priority: ClassVar[float] = 0.5
    """Of the highest priority that users may give (10^9). A tenth of the zeros costs a tenth of this."""

    qos: ClassVar[float] = 0.05
    """Of a Guaranteed pod; half of it of a Burstable one."""

    young: ClassVar[float] = 0.2
    """Of a pod that has just been created. It falls to nothing over `young_for`."""

    young_for: ClassVar[float] = 6 * 3600.0
    """Seconds of age at which a pod is young no more."""

    rather_not: ClassVar[float] = 2.0
    """Of a pod whose owner would rather not have it moved."""

    lost_hour: ClassVar[float] = 0.5
    """Of each hour that a pod of a Job has run, which it runs again."""


class WindowOptions(SettingGroup):
    """When planned moves may be made: in the valley of the cluster's predicted load."""

    peak_hours: tuple[str, ...] = ("17:00-23:00",)
    """Local hours without planned moves, whatever the forecast says, such as "17:00-23:00" or "sat,sun 10:00-23:00".
    """

    valley_share: ClassVar[float] = 0.25
    """The valley is where the load exceeds its lowest by at most this share of the way to its highest."""

    peak_share: ClassVar[float] = 0.25
    """The peak is where the load falls short of its highest by at most this share of the way to its lowest."""

    freeze: ClassVar[float] = 3600.0
    """Seconds before the load rises out of the valley in which no move starts: the ramp may come early."""

    shortest: ClassVar[float] = 1800.0
    """Seconds of the shortest window that is used: the forecast's step."""

    flat_share: ClassVar[float] = 0.1
    """A load whose highest exceeds its lowest by less than this share of itself has no valley: its lowest hours count.
    """

    flat_hours: ClassVar[float] = 4.0
    """Number of these hours."""

    @field_validator("peak_hours")
    @classmethod
    def _readable(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        return checked_hours(texts)


class UnforeseenOptions(SettingGroup):
    """Usage that no forecast saw: a few insensitive pods move at once, outside of the valley, too."""

    enabled: bool = True
    """Whether pods move because of it."""

    per_day: int = Field(default=3, ge=0, le=1000)
    """Pods that may move for this reason on a local day."""

    highest_priority: int = Field(default=0, ge=-(2**31), le=1_000_000_000)
    """Highest priority of pods that move for this reason."""

    readings: ClassVar[int] = 6
    """Consecutive readings above its bound after which a node counts as overloaded: three minutes are no spike."""

    calm_readings: ClassVar[int] = 3
    """Consecutive readings within it after which the node counts as calm again."""

    per_service: ClassVar[int] = 1
    """Pods of one service that may move so on a local day."""

    most_cost: ClassVar[float] = 0.5
    """Pods whose move costs more are not insensitive. In node half hours of heat."""

    least_replicas: ClassVar[int] = 3
    """Pods of services with fewer ready replicas are not insensitive: one of two is half of the service."""


class TrustOptions(SettingGroup):
    """When the rebalancer acts again after it returned to shadow."""

    return_after: int | None = Field(default=None, ge=1, le=365)
    """Good shadow nights in a row after which it acts again by itself. None: never by itself."""

    counts_from: date | None = None
    """Day before which nights are forgiven. Set it to today to make the rebalancer act again."""

    least_share: ClassVar[float] = 0.5
    """A night is bad if less than this share of the predicted gain was realised."""

    newly_hot_share: ClassVar[float] = 0.25
    """A night is bad if its moves made more half hours hot, where pods came to, than this share of those that they
    prevented."""

    least_gain: ClassVar[float] = 2.0
    """Node half hours. A plan that predicted less is never bad for gaining too little: that is within the error."""

    coverage: ClassVar[float] = 0.7
    """Share of the readings that must be there to grade a night."""

    bad_nights: ClassVar[int] = 2
    """Bad nights in a row after which it returns to shadow: one may be chance. Ungraded nights do not count."""


class BudgetOptions(SettingGroup):
    """How many pods may move in one night. The least of all limits counts."""

    share: float = Field(default=0.01, ge=0, le=1)
    """Share of all placed pods that may move in a night."""

    most: int = Field(default=100, ge=0, le=100_000)
    """Pods that may move in a night, however large the cluster is."""

    per_service: int = Field(default=2, ge=0, le=1000)
    """Pods of one service that may move in a night, but never more than half of its replicas."""

    per_namespace: int = Field(default=20, ge=0, le=100_000)
    """Pods of one namespace that may move in a night."""

    per_node: int = Field(default=4, ge=0, le=1000)
    """Pods that may leave a node in a night, and pods that may come to one."""

    def total(self, n_pods: int) -> int:
        """Moves of one night in a cluster with so many pods. A small cluster may have one."""
        return min(self.most, max(round(self.share * n_pods), 1 if self.share and n_pods else 0))

    def of_service(self, replicas: int) -> int:
        """Moves of one night of a service with so many replicas; a single one, by surge."""
        return min(self.per_service, max(1, replicas // 2))


class RebalanceLease(LeaseOptions):
    """Which of several replicas plans and moves."""

    name: str = Field(default="forecast-scheduler-rebalancer", min_length=1)
    """Name of the Lease."""


class RebalanceServing(ServingOptions):
    """Where `rebalance` listens, and who may ask."""

    group: ClassVar[str] = "rebalance.serving"

    port: int = Field(default=8891, ge=0, le=65_535)


class RebalanceOptions(SettingGroup):
    """How `rebalance` runs (docs/use/rebalancer.md)."""

    serving: RebalanceServing = Field(default_factory=RebalanceServing)

    mode: RebalanceMode = RebalanceMode.OFF
    """`shadow` plans and reports, `on` also moves pods."""

    horizon: ClassVar[float] = 86_400.0
    """Seconds that a plan looks ahead: until the next night's plan."""

    planning: ClassVar[PlanningOptions] = PlanningOptions()
    cooldown: ClassVar[CooldownOptions] = CooldownOptions()

    cost: CostOptions = Field(default_factory=CostOptions)
    window: WindowOptions = Field(default_factory=WindowOptions)
    unforeseen: UnforeseenOptions = Field(default_factory=UnforeseenOptions)
    trust: TrustOptions = Field(default_factory=TrustOptions)
    budget: BudgetOptions = Field(default_factory=BudgetOptions)
    execution: ExecutionOptions = Field(default_factory=ExecutionOptions)
    leader_election: RebalanceLease = Field(default_factory=RebalanceLease)

    @field_validator("mode", mode="before")
    @classmethod
    def _unquoted(cls, value: Any) -> Any:
        """YAML 1.1 reads `on` and `off`, unquoted, as truth values."""
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value
