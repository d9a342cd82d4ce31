"""What `status` has read of an installation at one moment: values, without a judgement.

None for a whole kind of facts means that it could not be read; `missing` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

PARTS: Final = ("scorer", "advisor", "webhook", "extender", "schedule", "rebalancer", "autoscaler")
"""Deployments of deploy/base, without what all their names begin with."""

PREFIX: Final = "forecast-scheduler-"
TRAINER: Final = f"{PREFIX}trainer"


class Missing(NamedTuple):
    """Facts that could not be read: which, and why in one sentence."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment. image: of its first container. stuck: why a rollout does not end, '' = it does."""

    name: str
    wanted: int
    ready: int
    image: str
    stuck: str = ""


@dataclass(frozen=True, slots=True)
class PartPod:
    """A pod of the namespace. job: that it belongs to, '' = none; trouble: why it is not ready, as its status says."""

    name: str
    part: str
    job: str
    created: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class LeaseFacts:
    """holder: '' = given back. lasts: duration in seconds. renewed, acquired: unix seconds, 0 = never."""

    holder: str
    lasts: float
    renewed: float
    acquired: float


@dataclass(frozen=True, slots=True)
class NightlyJob:
    """A run of the trainer. ended: unix seconds, 0 = it has not; why: it failed, in the words of the API."""

    name: str
    began: float
    ended: float = 0.0
    succeeded: bool = False
    why: str = ""
    last_line: str = ""


@dataclass(frozen=True, slots=True)
class Nightly:
    """The CronJob of the trainer, and its Jobs, the newest first."""

    image: str
    schedule: str
    suspended: bool
    jobs: tuple[NightlyJob, ...] = ()


@dataclass(frozen=True, slots=True)
class UsedModel:
    """The model of a service. age: seconds since it was due."""

    version: str
    age: float
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """What a part says of itself (/v1/status). level, reasons: of the degradation ladder."""

    level: int
    reasons: tuple[str, ...]
    ready: bool
    not_ready_because: str
    model: UsedModel | None
    measured_nodes: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Webhook:
    """The MutatingWebhookConfiguration. refuses: its failurePolicy is Fail. url: it names, '' = it names our Service;
    ca: what the certificate there is checked against (PEM)."""

    refuses: bool
    url: str = ""
    ca: bytes = b""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric now."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class FiringAlert:
    """summary, action, runbook: annotations of the first of `number` alerts of this name and severity."""

    name: str
    severity: str
    summary: str
    action: str = ""
    runbook: str = ""
    number: int = 1


@dataclass(frozen=True, slots=True)
class Store:
    """Prometheus. namespace: of its Service, '' = it is none of this cluster; gone: why it does not answer."""

    address: str
    namespace: str
    answers: bool
    gone: str = ""


@dataclass(frozen=True, slots=True)
class HeldPod:
    """A pod that our gate alone holds. created: unix seconds."""

    name: str
    created: float


@dataclass(frozen=True, slots=True)
class Facts:
    """
    now      : unix seconds
    leases   : by the part that they are of
    pods     : of the namespace
    answers  : by part; local: parts without a Deployment that answer, on this machine or at the webhook's URL
    """

    namespace: str
    now: float
    workloads: Mapping[str, Workload] | None = None
    nightly: Nightly | None = None
    pods: tuple[PartPod, ...] = ()
    leases: Mapping[str, LeaseFacts] = field(default_factory=dict)
    webhook: Webhook | None = None
    held: tuple[HeldPod, ...] | None = None
    answers: Mapping[str, ServiceAnswer] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    store: Store | None = None
    samples: tuple[Sample, ...] = ()
    alerts: tuple[FiringAlert, ...] | None = None
    missing: tuple[Missing, ...] = ()
