"""What the alerts about the autoscaler are for."""

from __future__ import annotations

from tests.dashboards.promtool_tests import Series
from tests.dashboards.scene import WARNING, Scene, steady

AUTOSCALER = {"job": "forecast-scheduler-autoscaler"}


def _autoscalers(held_up: float, leading: float, *, writes: bool = True, knows: float = 1.0) -> tuple[Series, ...]:
    """Of two replicas, of which the first leads, or would."""
    said = {"held_up": (held_up, 0.0), "leading": (leading, 0.0), "has_forecast": (knows, knows)}
    said |= {"acting": (leading, 0.0)} if writes else {}
    return tuple(
        steady(f"forecast_autoscale_{name}", value, instance=instance, **AUTOSCALER)
        for name, values in said.items()
        for instance, value in zip(("10.0.0.7:8892", "10.0.0.8:8892"), values, strict=True)
    )


AUTOSCALING = (
    Scene(
        "ForecastAutoscaleHeldUp",
        "the API server refuses",
        _autoscalers(1, 1),
        20,
        {WARNING: "forecast-scheduler-autoscaler: the autoscaler has not been able to go on for 15 minutes"},
        AUTOSCALER,
    ),
    Scene("ForecastAutoscaleHeldUp", "nothing holds it up", _autoscalers(0, 1), 20),
    Scene(
        "ForecastAutoscaleNoForecast",
        "the model is too old",
        _autoscalers(0, 1, knows=0),
        35,
        {WARNING: "forecast-scheduler-autoscaler: the autoscaler has had no forecast for 30 minutes"},
        AUTOSCALER,
    ),
    Scene("ForecastAutoscaleNoForecast", "there is one", _autoscalers(0, 1), 35),
    Scene(
        "ForecastAutoscaleNoLeader",
        "two replicas, no leader",
        _autoscalers(0, 0),
        15,
        {WARNING: "forecast-scheduler-autoscaler: no replica writes buffers, marks or requests"},
        AUTOSCALER,
    ),
    Scene("ForecastAutoscaleNoLeader", "one of them leads", _autoscalers(0, 1), 15),
    Scene("ForecastAutoscaleNoLeader", "nothing may be written", _autoscalers(0, 0, writes=False), 15),
)
