"""Which moves would help, which were made, and did they? A row of the dashboard about scheduling."""

from __future__ import annotations

from typing import Final

from dashboards.panels.layout import Placed, figure
from dashboards.panels.plots import ORANGE, RED, Query, lines, values
from dashboards.panels.selecting import of_leader, where
from dashboards.panels.units import COUNT

_MODES: Final = {0: "off", 1: "shadow", 2: "on"}
_OF_AN_HOUR: Final = "[1h]"
_LEADS: Final = "forecast_rebalance_leading"


def rebalancing(hot: float) -> list[Placed]:
    """The panels. Every replica looks at what would help; the one that leads acts."""
    return [
        _mode(),
        figure(
            "Moves that would help",
            "Pods that would leave nodes which the forecast expects to be hot until tomorrow, within the budget of a "
            "night, as of the last look; in every mode.",
            f"max (forecast_rebalance_planned_moves{where(job='$job')})",
        ),
        figure(
            "Held up",
            "1: something that was due could not be done, such as a request that the API server refuses. The log, and "
            "/v1/rebalance of the rebalancer, say what.",
            f"max (forecast_rebalance_held_up{where(job='$job')})",
            limits=((1, ORANGE),),
        ),
        figure(
            "Bad nights in a row",
            "Nights whose moves gained too little or made other nodes hot. After two of them the rebalancer only plans "
            "(rebalance.trust).",
            f"max ({of_leader('forecast_rebalance_bad_nights' + where(job='$job'), _LEADS)})",
            limits=((1, ORANGE), (2, RED)),
        ),
        figure(
            "Nodes above their bound",
            "Nodes whose usage has exceeded the upper bound of the forecast for several readings: a few insensitive "
            "pods leave them at once.",
            f"max ({of_leader('forecast_rebalance_overloaded_nodes' + where(job='$job'), _LEADS)})",
            limits=((1, ORANGE),),
        ),
        figure(
            "Moves under way",
            "Pods that are being replaced on another node at this moment.",
            f"max ({of_leader('forecast_rebalance_moves_under_way' + where(job='$job'), _LEADS)})",
        ),
        *_over_time(hot),
    ]


def _mode() -> Placed:
    shadow, on = (f"forecast_rebalance_mode{where(job='$job', mode=mode)}" for mode in ("shadow", "on"))
    number = f"{shadow} + ignoring (mode) 2 * {on}"
    return Placed(
        values(
            "Mode in force",
            "off: it only looks. shadow: it records and grades a plan each night. on: it moves pods. After bad nights "
            "it is shadow although the settings say on.",
            Query(f"max ({of_leader(f'({number})', _LEADS)})"),
            unit=COUNT,
            words=_MODES,
        ),
        width=4,
        height=4,
    )


def _over_time(hot: float) -> list[Placed]:
    half_hours = f"max by (cluster, moves) (forecast_rebalance_hot_half_hours{where(job='$job')})"
    gain = of_leader("forecast_rebalance_night_gain" + where(job="$job"), _LEADS)
    moves = f"increase(forecast_rebalance_moves_total{where(job='$job')}{_OF_AN_HOUR})"
    evictions = f"increase(forecast_rebalance_evictions_total{where(job='$job')}{_OF_AN_HOUR})"
    return [
        Placed(
            lines(
                "Hot half hours, before and after the moves",
                f"Node half hours over {hot:.0%} of capacity that the forecast expects until tomorrow: as "
                "things are, and with the moves that help. What is left after them needs more nodes or a larger "
                "budget.",
                Query(half_hours, "{{cluster}} {{moves}}"),
                unit=COUNT,
            ),
            width=6,
        ),
        Placed(
            lines(
                "Gain of the last night, predicted and realised",
                "Node half hours of heat that the moves of the last graded night were to prevent, and prevented. "
                "Realised below half of predicted is a bad night.",
                Query(f"max by (cluster, kind) ({gain})", "{{cluster}} {{kind}}"),
                unit=COUNT,
                least=None,
            ),
            width=6,
        ),
        Placed(
            lines(
                "Moves by state",
                "Moves that entered each state within an hour. done: the replacement is ready on the target; "
                "elsewhere: on another node; skipped: no longer as planned; refused: until the deadline "
                "disruption budgets, or the API server, said no; stuck: no replacement became ready.",
                Query(f"sum by (cluster, state) ({moves})", "{{cluster}} {{state}}"),
                unit=COUNT,
            ),
            width=6,
        ),
        Placed(
            lines(
                "Evictions by answer",
                "Requests to evict a pod within an hour, by what the API server answered. refused: a disruption budget "
                "said no, and the request is repeated.",
                Query(f"sum by (cluster, outcome) ({evictions})", "{{cluster}} {{outcome}}"),
                unit=COUNT,
            ),
            width=6,
        ),
    ]
