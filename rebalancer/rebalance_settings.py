"""Settings of the rebalancer, `rebalance`, and of trajectories, `replay.trajectory`."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from base.errors import InputError
from base.setting_group import Duration, SettingGroup
from forecast.hot_share import HOT_SHARE
from kube.leader_election.lease_options import LeaseOptions
from rebalancer.cooldown import CooldownOptions
from rebalancer.local_hours import parse_hours
from serving.server_settings import ServingOptions


class PlanningOptions(SettingGroup):
    """Which moves are worth it, and how hard the planner looks for them."""

    least_gain: float = Field(default=0.5, ge=0)
    """Node half hours of expected heat that a move has to prevent beyond its cost.

    Less is within the forecast's error."""
    guarded_margin: float = Field(default=0.15, ge=0, le=1)
    """No move makes a node hot that was not, even if its load is this part of the margin above the forecast.

    The margin is the forecast's upper bound less its mean. 0 trusts the mean, 1 the bound."""
    targets_looked_at: int = Field(default=24, ge=1)
    """Nodes that are looked at exactly for a pod, after a rough look at all."""
    exchanges_looked_at: int = Field(default=100, ge=0)
    """Pairs of moves that are looked at exactly for a node which single moves leave hot. 0 plans no pairs."""
    chains_looked_at: int = Field(default=60, ge=0)
    """Chains of up to four moves that are looked at for such a node. 0 plans no chains."""
    improvement_effort: float = Field(default=100, ge=0)
    """Second thoughts about a plan: million figures of pods to look at. 100 take a second or two.

    A plan that took more than a quarter of it is left as it is."""


class ExecutionOptions(SettingGroup):
    """How many pods move at a time, and how long each step may take."""

    parallel: int = Field(default=2, ge=1, le=50)
    """Moves under way at once. Two moves of one service are never under way together."""

    pin: Duration = Field(default=0.5, ge=0, le=60)
    """Time between the record of a move and the eviction: parts that place pods learn the target meanwhile."""

    retry: Duration = Field(default=5, gt=0, le=600)
    """Time between two tries to evict a pod that a disruption budget protects."""

    refusal_deadline: Duration = Field(default=300, gt=0, le=86_400)
    """A move whose pod could not be evicted for this time is given up as `refused`."""

    ready_deadline: Duration = Field(default=600, gt=0, le=86_400)
    """A replacement must be ready within this time after the pod went, its grace period included. Otherwise the move
    is `stuck`, and the plan starts nothing more."""

    max_elsewhere: int = Field(default=2, ge=1, le=100)
    """Replacements on other nodes than planned after which the plan starts nothing more."""

    keep_plans: int = Field(default=30, ge=1, le=1000)
    """Finished plans that are kept."""


class RebalanceMode(Enum):
    """What the rebalancer may do."""

    OFF = "off"
    SHADOW = "shadow"
    ON = "on"


class CostOptions(SettingGroup):
    """What a move costs, in node half hours of heat: a move is made only if it prevents more than it costs. Each part
    that a pod has is added."""

    move: float = Field(default=0.02, ge=0, le=100)
    """Every move costs this."""

    startup: float = Field(default=0.5, ge=0, le=100)
    """Of each half hour until the replacement is ready, as learned of the service."""

    default_startup: Duration = Field(default=120, ge=1, le=86_400)
    """Start-up time of a service of which none has been seen."""

    share: float = Field(default=0.2, ge=0, le=100)
    """Of a service that is gone as a whole meanwhile. Of n replicas one is gone: it costs 1/n of this."""

    priority: float = Field(default=0.5, ge=0, le=100)
    """Of the highest priority that users may give (10^9). A tenth of the zeros costs a tenth of this, and a priority
    of 0 or below nothing."""

    qos: float = Field(default=0.05, ge=0, le=100)
    """Of a Guaranteed pod; half of it of a Burstable one."""

    young: float = Field(default=0.2, ge=0, le=100)
    """Of a pod that has just been created. It falls to nothing over `young_for`."""

    young_for: Duration = Field(default=6 * 3600, ge=0, le=30 * 86_400)
    """Age at which a pod is young no more."""

    least_age: Duration = Field(default=600, ge=0, le=86_400)
    """Younger pods are never moved."""

    rather_not: float = Field(default=2, ge=0, le=100)
    """Of a pod whose owner would rather not have it moved."""

    lost_hour: float = Field(default=0.5, ge=0, le=100)
    """Of each hour that a pod of a Job has run, which it runs again."""

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
    """Kinds of owners that create a pod again after it was evicted. Pods of others are never moved."""

    system_namespaces: tuple[str, ...] = ("kube-system", "kube-public", "kube-node-lease")
    """Pods in these are never moved, unless an annotation for the descheduler or the cluster-autoscaler says that they
    may be."""

    move_local_storage: bool = False
    """Also move pods with an emptyDir on disk, whose content is lost, or a hostPath. Their owners can allow it one by
    one: `cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes`."""


class WindowOptions(SettingGroup):
    """When moves may be made: in the valley of the cluster's load."""

    valley_share: float = Field(default=0.25, ge=0, lt=1)
    """The valley is where the load exceeds its lowest by at most this share of the way to its highest."""

    peak_share: float = Field(default=0.25, ge=0, lt=1)
    """The peak is where the load falls short of its highest by at most this share of the way to its lowest."""

    peak_hours: tuple[str, ...] = ("17:00-23:00",)
    """No move is made in these local hours, whatever the forecast says, such as "17:00-23:00" or "sat,sun
    10:00-23:00"."""

    freeze: Duration = Field(default=3600, ge=0, le=12 * 3600)
    """No move starts so shortly before the load rises out of the valley."""

    shortest: Duration = Field(default=1800, ge=60, le=12 * 3600)
    """Shorter windows are not used."""

    flat_share: float = Field(default=0.1, ge=0, lt=1)
    """A load whose highest exceeds its lowest by less than this share of itself has no valley. Moves are then made in
    the lowest hours."""

    flat_hours: float = Field(default=4, ge=0.5, le=24)
    """Number of these hours."""

    @field_validator("peak_hours")
    @classmethod
    def _readable(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        for text in texts:
            try:
                parse_hours(text)
            except InputError as error:
                raise ValueError(str(error)) from error
        return texts


class UnforeseenOptions(SettingGroup):
    """Usage that no forecast saw: a few insensitive pods move at once, outside of the valley, too."""

    enabled: bool = True
    """Act on it at all."""

    readings: int = Field(default=6, ge=1, le=1000)
    """A node counts as overloaded after so many consecutive readings above its bound."""

    calm_readings: int = Field(default=3, ge=1, le=1000)
    """It counts as calm again after so many consecutive readings that are not."""

    share: float = Field(default=HOT_SHARE, gt=0, le=1)
    """Readings below this share of capacity never count, however unforeseen."""

    per_day: int = Field(default=3, ge=0, le=1000)
    """Pods that may move so on a local day."""

    per_service: int = Field(default=1, ge=0, le=1000)
    """Pods of one service that may move so on a local day."""

    most_cost: float = Field(default=0.5, ge=0, le=100)
    """Pods whose move costs more are not insensitive. In node half hours of heat."""

    highest_priority: int = Field(default=0, ge=-(2**31), le=1_000_000_000)
    """Pods of higher priority are not insensitive."""

    least_replicas: int = Field(default=3, ge=2, le=1000)
    """Pods of services with fewer ready replicas are not insensitive."""


class TrustOptions(SettingGroup):
    """Grades of past nights, and what follows from them."""

    least_share: float = Field(default=0.5, ge=0, le=1)
    """A night is bad if less than this share of the predicted gain was realised."""

    newly_hot_share: float = Field(default=0.25, ge=0, le=1)
    """A night is bad if its moves made more half hours hot, where pods came to, than this share of those that they
    prevented."""

    least_gain: float = Field(default=2, ge=0, le=1000)
    """Node half hours. A plan that predicted less is never bad for gaining too little: that is within the error."""

    coverage: float = Field(default=0.7, gt=0, le=1)
    """Share of the readings that must be there to grade a night."""

    bad_nights: int = Field(default=2, ge=1, le=30)
    """After so many bad nights in a row the rebalancer returns to shadow. Nights that cannot be graded do not count."""

    return_after: int | None = Field(default=None, ge=1, le=365)
    """After so many good shadow nights in a row it acts again by itself. Without a number: never by itself."""

    counts_from: date | None = None
    """Nights before this day are forgiven. To have it act again, set this to today."""


class BudgetOptions(SettingGroup):
    """How many pods may move in one night. The least of all limits counts."""

    share: float = Field(default=0.01, ge=0, le=1)
    """Of all pods that sit on nodes."""

    most: int = Field(default=100, ge=0, le=100_000)
    """Pods, however large the cluster is."""

    per_service: int = Field(default=2, ge=0, le=1000)
    """Pods of one service, but never more than half of its replicas."""

    per_namespace: int = Field(default=20, ge=0, le=100_000)
    """Pods of one namespace."""

    per_node: int = Field(default=4, ge=0, le=1000)
    """Pods that leave a node, and pods that come to one."""

    def total(self, n_pods: int) -> int:
        """Moves of one night in a cluster with so many pods. A small cluster may have one."""
        return min(self.most, max(round(self.share * n_pods), 1 if self.share and n_pods else 0))

    def of_service(self, replicas: int) -> int:
        """Moves of one night of a service with so many replicas; a single one, by surge."""
        return min(self.per_service, max(1, replicas // 2))


class RebalanceLease(LeaseOptions):
    """Which of several replicas plans and moves."""

    name: str = Field(default="forecast-scheduler-rebalancer", min_length=1)
    """Name of the Lease: the same for all replicas."""


class RebalanceServing(ServingOptions):
    """Where `rebalance` listens, and who may ask."""

    group: ClassVar[str] = "rebalance.serving"

    port: int = Field(default=8891, ge=0, le=65_535)


class RebalanceOptions(SettingGroup):
    """How `rebalance` runs (docs/use/rebalancer.md). It has its scorer inside: the settings under `scorer` count, too,
    but for serving."""

    serving: RebalanceServing = Field(default_factory=RebalanceServing)

    mode: RebalanceMode = RebalanceMode.OFF
    """`shadow` plans and reports, `on` also moves pods."""

    horizon: Duration = Field(default=86_400, ge=3600, le=7 * 86_400)
    """Time that a plan looks ahead."""

    planning: PlanningOptions = Field(default_factory=PlanningOptions)
    cost: CostOptions = Field(default_factory=CostOptions)
    window: WindowOptions = Field(default_factory=WindowOptions)
    unforeseen: UnforeseenOptions = Field(default_factory=UnforeseenOptions)
    trust: TrustOptions = Field(default_factory=TrustOptions)
    budget: BudgetOptions = Field(default_factory=BudgetOptions)
    cooldown: CooldownOptions = Field(default_factory=CooldownOptions)
    execution: ExecutionOptions = Field(default_factory=ExecutionOptions)
    leader_election: RebalanceLease = Field(default_factory=RebalanceLease)

    @field_validator("mode", mode="before")
    @classmethod
    def _unquoted(cls, value: Any) -> Any:
        """YAML 1.1 reads `on` and `off`, unquoted, as truth values."""
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class TrajectoryOptions(SettingGroup):
    """What `replay --trajectory` plays. Plans follow `rebalance`: horizon, planning, budget, cooldown, cost.move."""

    release: float = Field(default=0.0, ge=0, le=1)
    """Share of the services that is released each day at 04:00, in addition to the recorded releases: all their pods
    are placed anew, in random order."""

    forecast: Literal["model", "last_week"] = "model"
    """By what the rules `placement`, `moves` and `placement_and_moves` decide: a model that is fitted on the days
    before, or the week before as it was."""

    fit_nights: int = Field(default=1, ge=1, le=14)
    """A model is fitted every so many nights. 1, as the trainer does, fits for every night that is played."""

    improvement_effort: float = Field(default=10, ge=0)
    """In place of `rebalance.planning.improvement_effort`, since many plans are made in a row."""
