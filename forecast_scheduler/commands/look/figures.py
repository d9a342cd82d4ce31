"""The figures of one look at a cluster: one document that the screen and all other forms show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

Section = Mapping[str, Any] | None
"""None = it could not be computed; LookFigures.not_computed says why."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command, and what it is for."""

    why: str
    command: str


@dataclass(frozen=True, slots=True)
class LookFigures:
    """All that one look found. Keys of sections are those that other commands write with --json.

    cluster  : name of the kubeconfig's context
    made_at  : ISO 8601, in the cluster's time zone
    store    : where the metrics are from, in a few words
    history  : days, first_day, last_day, services, nodes, time_zone, is_cold_start, forecast_from
    nodes    : n_nodes, n_pods, hot_share, hot_tonight (nodes expected above it in the next 24 hours)
    tonight  : `nodes`: the hottest of the next 24 hours, as `nodes --json`, each with `services`, which make its peak,
               and `besides_pods`, as `node --json`
    week     : the same of the coming days: each node with its hottest day
    placing  : `rules`, `gap_closed` and `window` of `replay --json`, of the recorded days
    moves    : `rebalance --plan --json` with at most `most` moves
    requests : `requests --json`
    capacity : `capacity --json`
    doctor   : `doctor --json`: what limits the forecast, and why
    remarks  : what else is uncertain, a line each
    money    : `money` of `nodes --json`: a month's cost. Moves, requests and capacity have what they save in theirs
    not_computed : why, by section
    next     : commands that follow
    seconds  : that each part took
    """

    cluster: str
    made_at: str
    store: str
    history: Mapping[str, Any]
    nodes: Section = None
    tonight: Section = None
    week: Section = None
    placing: Section = None
    moves: Section = None
    requests: Section = None
    capacity: Section = None
    doctor: Section = None
    remarks: tuple[str, ...] = ()
    money: Section = None
    not_computed: Mapping[str, str] = field(default_factory=dict)
    next: tuple[NextStep, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The figures as `look --json` writes them."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}


def _plain(value: object) -> object:
    """Return a value of a field as JSON has it: lists for tuples, objects for mappings."""
    if isinstance(value, tuple):
        return [asdict(one) if isinstance(one, NextStep) else one for one in value]
    return dict(value) if isinstance(value, Mapping) else value
