"""An installation in which all is well: what tests of `status` break one thing of."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from forecast_scheduler.commands.status.facts import (
    Facts,
    HeldPod,
    LeaseFacts,
    Nightly,
    NightlyJob,
    PartPod,
    Sample,
    ServiceAnswer,
    Store,
    UsedModel,
    Webhook,
    Workload,
)

NOW: Final = 1_800_000_000.0
HOUR: Final = 3600.0
IMAGE: Final = "registry.example/forecast-scheduler:0.1.0"
PROMETHEUS: Final = "http://prometheus-k8s.monitoring:9090"


def answer(*, level: int = 0, age: float = 6 * HOUR, measured: int = 50, refused: str = "") -> ServiceAnswer:
    """Of a scorer with a model of this age that measures this many of its 50 nodes."""
    model = UsedModel("20270115T030000", age, refused)
    reasons = () if measured == 50 else (f"usage is measured on {measured} of 50 nodes",)
    return ServiceAnswer(level, reasons, True, "", model, measured, 50)


def job(*, hours_ago: float = 6.0, succeeded: bool = True, last_line: str = "published") -> NightlyJob:
    """One that ended this long ago, after half an hour."""
    ended = NOW - hours_ago * HOUR
    return NightlyJob("trainer-1", ended - HOUR / 2, ended, succeeded, "" if succeeded else "exit status 2", last_line)


def lease(*, renewed_ago: float = 1.0, holder: str = "advisor-a_1") -> LeaseFacts:
    """Of an advisor that has led for an hour."""
    return LeaseFacts(holder, 4.0, NOW - renewed_ago, NOW - HOUR)


def workload(part: str, *, ready: int = 2, wanted: int = 2, image: str = IMAGE) -> Workload:
    """Return a Deployment of a part, with so many of its replicas ready."""
    return Workload(part, wanted, ready, image)


def pod(part: str, trouble: str = "") -> PartPod:
    """Return a pod of a part. trouble: why it is not ready, '' = it is."""
    return PartPod(f"{part}-x", part, "", NOW - HOUR, trouble)


def held(*, seconds: float) -> HeldPod:
    """A pod that has been held for so long."""
    return HeldPod("shop/cart-1", NOW - seconds)


def following(value: float, *, instance: str = "a", leads: bool = True) -> tuple[Sample, ...]:
    """What Prometheus has of an advisor: whether nominations are followed."""
    labels = {"job": "forecast-scheduler-advisor", "instance": instance}
    return (
        Sample("forecast_nominations_followed", labels, value),
        Sample("forecast_leader", labels, float(leads)),
        Sample("forecast_decisions_total", labels | {"outcome": "as_advised"}, 19.0),
        Sample("forecast_decisions_total", labels | {"outcome": "elsewhere"}, 1.0),
    )


HEALTHY: Final = Facts(
    namespace="forecast-scheduler",
    now=NOW,
    workloads={part: workload(part) for part in ("scorer", "advisor", "webhook")},
    nightly=Nightly(IMAGE, "17 3 * * *", False, (job(),)),
    pods=(pod("advisor"),),
    leases={"advisor": lease()},
    webhook=Webhook(refuses=False),
    held=(held(seconds=2.0),),
    answers={"scorer": answer()},
    store=Store(PROMETHEUS, "monitoring", answers=True),
    samples=following(1.0),
    alerts=(),
)


def with_part(changed: Workload) -> Facts:
    """HEALTHY with another Deployment in place of one, or beside them."""
    return replace(HEALTHY, workloads={**(HEALTHY.workloads or {}), changed.name: changed})
