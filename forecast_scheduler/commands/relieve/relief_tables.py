"""The relief of a node on the terminal: the moves, what stays, what to hold, and the commands to type; and as JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct
from rich.table import Table

from forecast_scheduler.reports.table_format import Column, printable, table_of
from kube.client.eviction import eviction_body, eviction_path
from kube.client.pod_writes import PodIdentity
from rebalancer.hot_node import HotNodeRelief, Rollout
from scorer.answers import Peak
from scorer.highest_peak import peak_words, share_of
from scorer.load_scale import percent

_NAMED: Final = 3
"""Pods that are named for each reason to stay."""


class RelievingMove(Struct, frozen=True):
    """One pod to the node where it would land, and both nodes after it and all moves before."""

    namespace: str
    pod: str
    service: str
    target: str
    measured: float | None
    here: Peak | None
    there: Peak | None
    commands: list[str]


class HeldRollout(Struct, frozen=True):
    """A Deployment under way of which new pods are on the node."""

    namespace: str
    name: str
    new_here: int
    old_pods: int
    command: str


class ReliefAnswer(Struct, frozen=True):
    """How to relieve a node. measured: share of capacity in use now; peak: expected in the next 24 hours"""

    node: str
    now: datetime
    measured: float | None
    peak: Peak | None
    is_hot: bool
    moves: list[RelievingMove]
    is_enough: bool
    is_cut: bool
    stays: dict[str, str]
    rollouts: list[HeldRollout]
    coming: list[str]
    commands: list[str]


def answer_of(relief: HotNodeRelief) -> ReliefAnswer:
    """Return the relief as the command writes it."""
    return ReliefAnswer(
        node=relief.node,
        now=relief.now,
        measured=relief.measured,
        peak=relief.peak,
        is_hot=relief.is_hot,
        moves=[
            RelievingMove(
                one.pod.namespace,
                one.pod.name,
                str(one.service),
                one.target,
                one.measured,
                one.here,
                one.there,
                [eviction_command(one.pod)],
            )
            for one in relief.moves
        ],
        is_enough=relief.is_enough,
        is_cut=relief.is_cut,
        stays=dict(relief.stays),
        rollouts=[
            HeldRollout(one.namespace, one.name, one.new_here, one.old_pods, _pause(one)) for one in relief.rollouts
        ],
        coming=list(relief.coming),
        commands=list(commands(relief)),
    )


def relief_tables(relief: HotNodeRelief) -> Iterator[Table]:
    """One row for each move, in order."""
    if not relief.moves:
        return
    columns = (
        Column(">#", lambda row: row[0]),
        Column("pod", lambda row: f"{row[1].pod.namespace}/{row[1].pod.name}"),
        Column("lands on", lambda row: row[1].target),
        Column(">measured", lambda row: percent(row[1].measured)),
        Column(">peak here", lambda row: percent(share_of(row[1].here))),
        Column(">peak there", lambda row: percent(share_of(row[1].there))),
    )
    title = f"{len(relief.moves)} moves, and how full {printable(relief.node)} and the other node are after each"
    table = table_of(title, columns, enumerate(relief.moves, start=1))
    table.columns[1].overflow = "fold"  # a name is typed: it must be there whole
    yield table


def relief_head(relief: HotNodeRelief, hot: float) -> Iterator[str]:
    """How hot the node is, and what to hold before any pod is moved."""
    node, today = printable(relief.node), relief.now.date()
    measured = "is not measured" if relief.measured is None else f"uses {percent(relief.measured)} now"
    peak = "no peak is expected: no capacity is known" if relief.peak is None else peak_words(relief.peak, today)
    yield f"{node} {measured}; {peak}"
    for one in relief.rollouts:
        yield (
            f"hold the rollout of {one.namespace}/{one.name} first: {one.new_here} of its new pods are here, "
            f"{one.old_pods} old ones are still to be replaced: {_pause(one)}"
        )
    if relief.coming:
        yield f"{len(relief.coming)} pods are nominated for {node} and not there yet; cordoning it keeps them away"
    if not relief.is_hot:
        yield f"it is not hot (over {percent(hot)}): nothing has to move"


def relief_lines(relief: HotNodeRelief, hot: float, placed_by: Iterable[str], *, apply: bool) -> Iterator[str]:
    """What comes after the table. placed_by: components by which targets were judged; apply: the moves are made now"""
    if not relief.is_hot:
        return
    yield from _outcome(relief, hot)
    for why, pods in _by_reason(relief):
        named = ", ".join(pods[:_NAMED]) + (f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else "")
        yield f"stays: {printable(named)}: {printable(why)}"
    if not relief.moves:
        return
    yield f"targets are judged as `explain` does: {'; '.join(placed_by)}"
    if apply:
        return
    yield "nothing was moved. Type, and wait before each next pod until the replacement is ready:"
    yield from (f"  {one}" for one in commands(relief))
    pause = ", but pauses no rollout," if relief.rollouts else ""
    yield f"or type this command again with --apply, which does the same{pause} and stops once the node is cool"


def _outcome(relief: HotNodeRelief, hot: float) -> Iterator[str]:
    n = len(relief.moves)
    if relief.is_enough:
        yield f"after {n} moves it is under {percent(hot)}, measured and expected"
    elif relief.is_cut:
        yield f"{n} moves help and are as many as --most allows: ask for more by --most {2 * n}"
    elif n:
        yield f"{n} moves help and do not bring it under {percent(hot)}: add nodes, or lower what its pods do"
    else:
        yield "no pod that may move would help: add nodes, or lower what its pods do"


def _by_reason(relief: HotNodeRelief) -> list[tuple[str, list[str]]]:
    """Reasons to stay with their pods, the most frequent first."""
    count = Counter(why for _, why in relief.stays)
    return [(why, [pod for pod, because in relief.stays if because == why]) for why, _ in count.most_common()]


def commands(relief: HotNodeRelief) -> Iterator[str]:
    """What to type, in order."""
    yield from (_pause(one) for one in relief.rollouts)
    if relief.moves:
        node = shlex.quote(relief.node)
        yield f"kubectl cordon {node}"
        yield from (eviction_command(one.pod) for one in relief.moves)
        yield f"kubectl uncordon {node}"


def eviction_command(pod: PodIdentity) -> str:
    """Return the kubectl command that evicts a pod, and no later one of its name, as its disruption budgets allow."""
    return (
        f"echo {shlex.quote(eviction_body(pod).decode())} | kubectl create --raw {shlex.quote(eviction_path(pod))} -f -"
    )


def _pause(rollout: Rollout) -> str:
    return f"kubectl -n {shlex.quote(rollout.namespace)} rollout pause deployment/{shlex.quote(rollout.name)}"
