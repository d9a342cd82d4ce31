"""What goes wrong in an installation: for each cause the figures that change, also those of its consequences.

A cause begins at minute BEGIN and is played until minute END. Consequences are as the processes have them: the level
rises with an old model, Leases end 15 s after the API server falls silent, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from testing.alerting.installation import FOLLOWING, HOUR, REPLICAS, Figure, gated_pod, healthy

BEGIN: Final = 5
Steps = list[tuple[float, Figure]]

END: Final = 75
"""An hour and ten minutes: the longest that a condition has to last for an alert is an hour."""


@dataclass(frozen=True, slots=True)
class Change:
    """From some minutes after the beginning on, figures of this name have another value.

    parts       : of these parts; () = of all that have it
    value       : at that minute, and `a_minute` its growth
    labels      : that the figure must have
    """

    name: str
    value: float
    a_minute: float = 0.0
    after: float = 0.0
    parts: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def fits(self, figure: Figure) -> bool:
        """Return whether it changes the figure."""
        of_part = not self.parts or figure.part in self.parts
        return figure.name == self.name and of_part and set(self.labels) <= set(figure.labels)


@dataclass(frozen=True, slots=True)
class Cause:
    """
    alert   : the one that is raised, with its severity; "" = none
    dead    : replicas whose target does not answer from BEGIN on
    never   : parts that were never started: their targets never answer
    added   : figures that come with the cause
    """

    name: str
    alert: str
    severity: str = "warning"
    changes: tuple[Change, ...] = ()
    dead: tuple[tuple[str, int], ...] = ()
    never: tuple[str, ...] = ()
    added: tuple[Figure, ...] = ()

    def answers(self, part: str, replica: int, minute: float) -> bool:
        """Return whether the target answers."""
        return part not in self.never and (minute < BEGIN or (part, replica) not in self.dead)

    def pieces(self) -> Iterable[tuple[Figure, Steps]]:
        """Each figure with what it is instead, by the minute from which on, the last one last."""
        for figure in healthy():
            later = [one for one in self.changes if one.fits(figure)]
            steps = [(BEGIN + one.after, _from(figure, one)) for one in sorted(later, key=lambda one: one.after)]
            yield figure, steps


def _from(figure: Figure, change: Change) -> Figure:
    """The figure as it is from then on, written for minute 0."""
    start = BEGIN + change.after
    if figure.is_moment:
        return replace(figure, value=change.value - 60 * start)
    return replace(figure, value=change.value - change.a_minute * start, a_minute=change.a_minute)


def _all_of(*parts: str) -> tuple[tuple[str, int], ...]:
    return tuple((part, replica) for part in parts for replica in range(REPLICAS[part]))


def _age(hours: float, after: float = 0) -> Change:
    return Change("forecast_model_age_seconds", hours * HOUR, 60, after)


def _success(hours_ago: float) -> Change:
    """From the start, since this time cannot go back; while the model is not as old, figures were lost."""
    return Change("forecast_train_last_success_timestamp_seconds", hours_ago * HOUR, after=-BEGIN)


def _level(level: float, after: float) -> Change:
    return Change("forecast_degradation_level", level, after=after)


def _peaks(name: str, quantile: str, share: float) -> Change:
    return Change("forecast_node_predicted_peak", share, labels=(("node", name), ("quantile", quantile)))


def _seen(seconds: float) -> Change:
    return Change("forecast_seen_gated_longest_seconds", seconds, 60)


_SILENT: Final = (
    Change("forecast_cluster_state_age_seconds", 0, 60),
    _level(4, after=15),
    Change("forecast_leader", 0, after=0.25),
    Change("forecast_rebalance_leading", 0, after=0.25),
    Change("forecast_autoscale_leading", 0, after=0.25),
    Change("forecast_rebalance_held_up", 1),
    Change("forecast_autoscale_held_up", 1),
    Change("forecast_autoscale_has_forecast", 0, after=15),
    Change("forecast_pending_pods", 4, parts=("schedule",)),
)
_UNMEASURED: Final = (
    Change("forecast_usage_age_seconds", 0, 60),
    _level(1, after=5),
    Change("forecast_autoscale_held_up", 1),
    # Half an hour later it is known that the run of this night failed.
    _success(30.2),
    _age(29.5, after=-BEGIN),
)
_UNADVISED: Final = Change("forecast_webhook_unadvised_pods_total", 0, 4)
_RELEASING: Final = _all_of("advisor", "webhook")
_EVERY_PART: Final = _all_of(*FOLLOWING, "webhook")

CAUSES: Final = (
    Cause("nothing is wrong", ""),
    Cause("rebalancer, autoscaler never started", "", never=("rebalancer", "autoscaler")),
    # Half an hour after the night's run failed the model is a day and a half old.
    Cause("nightly run failed", "ForecastTrainFailed", changes=(_success(30.2), _age(35.5), _level(2, after=30))),
    Cause("models do not arrive", "ForecastModelStale", changes=(_age(35.9), _level(2, after=6))),
    Cause(
        "model two weeks old, no run since",
        "ForecastModelStale",
        "critical",
        changes=(
            _success(14 * 24 + 10),
            _age(14 * 24 + 0.01),
            _level(3, after=0),
            Change("forecast_autoscale_has_forecast", 0),
        ),
    ),
    Cause(
        "a newer model is corrupt", "ForecastModelRefused", changes=(Change("forecast_model_refused", 1), _age(35.5))
    ),
    Cause("Prometheus answers none of ours", "ForecastUsageStale", changes=_UNMEASURED),
    Cause("API server silent", "ForecastClusterStateStale", "critical", changes=_SILENT),
    Cause("advisor dead, webhook releases", "ForecastComponentDown", "critical", (_UNADVISED,), _all_of("advisor")),
    Cause("advisor and webhook dead, pods held", "ForecastPodsHeld", "critical", (_seen(2),), _RELEASING),
    Cause(
        "all parts dead, pods held",
        "ForecastPodsHeld",
        "critical",
        dead=_EVERY_PART,
        added=tuple(gated_pod(5 - 60 * BEGIN)),
    ),
    Cause(
        "rights to remove gates lost",
        "ForecastPodsHeld",
        "critical",
        (_seen(2), Change("forecast_gated_longest_seconds", 2, 60), _UNADVISED),
    ),
    Cause("scorer dead", "ForecastComponentDown", "critical", dead=_all_of("scorer")),
    Cause("webhook dead", "ForecastComponentDown", "critical", dead=_all_of("webhook")),
    Cause("one of two webhooks dead", "ForecastTargetDown", dead=(("webhook", 0),)),
    Cause("all parts dead", "ForecastComponentDown", "critical", dead=_EVERY_PART),
    Cause(
        "extender slow",
        "ForecastExtenderNeutral",
        changes=(Change("forecast_extender_requests_total", 0, 5, labels=(("outcome", "late"),)),),
    ),
    Cause(
        "three nodes hot tonight",
        "ForecastHotSpotTonight",
        changes=tuple(_peaks(node, "0.5", 85) for node in ("n1", "n2", "n3")),
    ),
    Cause(
        "three nodes hot, one beyond its capacity",
        "ForecastHotSpotTonight",
        "critical",
        (*(_peaks(node, "0.5", 85) for node in ("n1", "n2", "n3")), _peaks("n1", "0.95", 120)),
    ),
    Cause(
        "nominations ignored",
        "ForecastNominationsIgnored",
        changes=(Change("forecast_nominations_followed", 0),),
    ),
    Cause(
        "replacement of a move stuck",
        "ForecastRebalanceStuck",
        changes=(Change("forecast_rebalance_moves_total", 1, after=1),),
    ),
    Cause(
        "scheduling loop hangs",
        "ForecastSchedulingLoopStalled",
        "critical",
        (
            Change("forecast_scheduling_loop_age_seconds", 0, 60, parts=("schedule",)),
            Change("forecast_pending_pods", 3, parts=("schedule",)),
            Change("forecast_schedule_attempts_total", 50, parts=("schedule",)),
        ),
    ),
    Cause(
        "schedule has no right on Leases",
        "ForecastNoLeader",
        "critical",
        (Change("forecast_leader", 0, after=0.25, parts=("schedule",)),),
    ),
)
