"""What alerts on held pods and on advice are for, as alert_scenes.py has it for the others."""

from __future__ import annotations

from typing import Final

from tests.dashboards.promtool_tests import Series, series
from tests.dashboards.scene import CRITICAL, WARNING, Scene, steady

ADVISOR: Final = {"job": "forecast-scheduler-advisor"}
SCORER: Final = {"job": "forecast-scheduler-scorer"}
WEBHOOK: Final = {"job": "forecast-scheduler-webhook"}
_SEEN: Final = "forecast_seen_gated_longest_seconds"
_HELD: Final = "A pod has been held in SchedulingGated for"


def _gated(seconds: float, *, at: int = 5, older: bool = False) -> tuple[Series, ...]:
    """One gated pod of two, as old as this after `at` minutes. older: kube-state-metrics, which names each reason."""
    pods = {"gated": 60 * at - seconds, "runs": 0.0}
    reasons = {"gated": "SchedulingGated", **({"runs": "SchedulingGated"} if older else {})}
    return (
        *(steady("kube_pod_created", made, namespace="shop", pod=name, uid=name) for name, made in pods.items()),
        *(
            steady(
                "kube_pod_status_reason", float(name == "gated"), namespace="shop", pod=name, uid=name, reason=reason
            )
            for name, reason in reasons.items()
        ),
    )


ADVICE_SCENES: Final = (
    Scene(
        "ForecastPodsHeld",
        "neither may remove the gate",
        (
            steady("forecast_gated_longest_seconds", 40, **WEBHOOK),
            steady("forecast_gated_longest_seconds", 0, **ADVISOR),
        ),
        {CRITICAL: f"{_HELD} 40s"},
        at=5,
        labels={},
    ),
    Scene("ForecastPodsHeld", "25 seconds", (steady("forecast_gated_longest_seconds", 25, **WEBHOOK),), at=5),
    Scene(
        "ForecastPodsHeld",
        "advisor and webhook are gone, and the scorer sees the pod",
        (steady(_SEEN, 35, **SCORER), steady("up", 0, **ADVISOR), steady("up", 0, **WEBHOOK)),
        {CRITICAL: f"{_HELD} 35s"},
        at=1,
        labels={},
    ),
    Scene(
        "ForecastPodsHeld",
        "a tenant's quota holds pods, and the advisor knows it",
        (steady(_SEEN, 900, **SCORER), steady("forecast_gated_by_quota_pods", 3, **ADVISOR)),
        at=5,
    ),
    *(
        Scene(
            "ForecastPodsHeld",
            f"no process of ours is left, and kube-state-metrics sees the pod{' (2.19)' if older else ''}",
            (series("up", "1 1 1 stale", **ADVISOR), series(_SEEN, "0 0 0 stale", **SCORER), *_gated(45, older=older)),
            {CRITICAL: f"{_HELD} 45s"},
            at=5,
            labels={},
        )
        for older in (False, True)
    ),
    Scene(
        "ForecastPodsHeld",
        "the scorer sees that it is not our gate",
        (series("up", "1 1 1 stale", **ADVISOR), steady(_SEEN, 0, **SCORER), *_gated(900)),
        at=5,
    ),
    Scene(
        "ForecastPodsHeld",
        "other controllers hold pods where no advisor was installed",
        (steady("up", 0, **WEBHOOK), *_gated(900)),
        at=5,
    ),
    Scene(
        "ForecastUnadvised",
        "the webhook may not remove gates",
        (
            series("forecast_webhook_unadvised_pods_total", "0+4x60", because="cannot_release", **WEBHOOK),
            steady("up", 1, **ADVISOR),
        ),
        {WARNING: "forecast-scheduler-webhook: 20 pods came without advice in five minutes"},
        at=10,
    ),
    Scene(
        "ForecastUnadvised",
        "the advisor is down, which has an alert",
        (
            series("forecast_webhook_unadvised_pods_total", "0+4x60", because="no_advisor", **WEBHOOK),
            series("up", "1 1 0x60", **ADVISOR),
        ),
        at=10,
    ),
    Scene(
        "ForecastUnadvised",
        "it has happened once",
        (series("forecast_webhook_unadvised_pods_total", "4+0x60", because="no_advisor", **WEBHOOK),),
        at=10,
    ),
)
