"""Nodes on their way from one shard to another: given by their owner, and lent to the leader.

    stays --begin--> leaving: nothing is placed any more --no pod of ours on the way--> one patch: label and record
      ^                                    |
      +------ out of time, or refused -----+

Called by the thread of the keeper, but for `want` and `served`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

import msgspec
from kubernetes import client

from kube.client.api_answer import ApiAnswer
from kube.client.kubernetes_client import send
from kube.client.pod_writes import MERGE
from scheduler.shards.node_shards import HandedOver, LoanRequest, handing_over, wanting
from scheduler.shards.ownership import NodeOwnership

logger = logging.getLogger(__name__)

_LONGEST_SECONDS: Final = 20.0
_REQUEST_SECONDS: Final = 2.0
_SHOWN_SECONDS: Final = 5.0
_STEP_SECONDS: Final = 2.0
"""After which what is left waits for the next step: the same thread takes shards, and gives up those of a hung loop."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Node(msgspec.Struct):
    metadata: _Metadata


@dataclass(frozen=True, slots=True)
class _Move:
    """to, home: see HandedOver; since: by the clock; rests_until: the patch was sent, and the watch is to show it"""

    source: int
    to: int
    home: int
    since: float
    rests_until: float = 0.0


class NodeMoves:
    """
    locked  : holds the tables
    may_act : whether this replica may act for a shard now
    loan    : seconds for which the leader wants a node
    most    : nodes that leave at once
    clock   : seconds, monotonic; wall: unix seconds
    """

    def __init__(
        self,
        api: client.ApiClient,
        ownership: NodeOwnership,
        *,
        locked: Callable[[], AbstractContextManager[Any]],
        may_act: Callable[[int], bool],
        loan: float,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._ownership, self._locked, self._may_act = api, ownership, locked, may_act
        self._loan, self._most, self._clock, self._wall = loan, most, clock, wall
        self._moves: dict[str, _Move] = {}
        self._wants: dict[str, tuple[str, float]] = {}  # nodes of others: for which unit, and until when
        self._asked: dict[str, LoanRequest] = {}  # what the nodes of others say by now
        self.handed_over = self.lent = 0

    def want(self, unit: str, nodes: Sequence[str]) -> None:
        """Ask for these nodes of other replicas. Under the lock of the tables."""
        until = self._clock() + self._loan
        for node in nodes:
            self._wants[node] = unit, until

    def served(self, unit: str) -> None:
        """The unit needs no nodes of others any more. Under the lock of the tables."""
        for node in [node for node, (of_unit, _) in self._wants.items() if of_unit == unit]:
            del self._wants[node]

    def begin(self, node: str, to: int, *, home: int = -1) -> bool:
        """Begin to hand a node over; returns whether that is possible now. Under the lock of the tables."""
        source = self._ownership.shard(node)
        if node in self._moves or len(self._moves) >= self._most or source < 0 or source == to:
            return False
        self._moves[node] = _Move(source, to, home, self._clock())
        self._ownership.leave(node)
        return True

    @property
    def room(self) -> int:
        """Return how many more nodes may leave now."""
        return self._most - len(self._moves)

    def step(self, leader_shard: int) -> None:
        """Send what is due. leader_shard: of this replica, for nodes that it wants; -1 = it does not lead."""
        self._lend()
        self._hand_over()
        self._ask(leader_shard)
        self._return()

    def drop(self) -> None:
        """This replica owns nothing any more."""
        with self._locked():
            for node in self._moves:
                self._ownership.stay(node)
            self._moves.clear()
            self._wants.clear()

    # Inside

    def _lend(self) -> None:
        """Begin to hand over nodes of ours that the leader asks for."""
        with self._locked():
            for node, wish in self._ownership.wishes(self._loan):
                source = self._ownership.shard(node)
                if source != wish.to:
                    self.lent += self.begin(node, wish.to, home=source)

    def _hand_over(self) -> None:
        now = self._clock()
        ready: dict[str, HandedOver] = {}
        with self._locked():
            for node, move in list(self._moves.items()):
                if self._ownership.shard(node) != move.source or now - move.since > _LONGEST_SECONDS:
                    self._end(node)  # it has gone, or what is on its way there takes too long
                elif now >= move.rests_until and self._ownership.is_quiet([node]):
                    digest = self._ownership.digest(node)
                    ready[node] = HandedOver(move.source, move.to, digest, move.home)
        for node, record in ready.items():
            if self._clock() - now > _STEP_SECONDS:
                break
            answer = self._patch_when_ours(node, record)
            if answer.is_success:
                self.handed_over += 1
                logger.info("a node is handed over", extra={"node": node, "from": record.source, "to": record.to})
                self._moves[node] = replace(self._moves[node], rests_until=now + _SHOWN_SECONDS)
                continue  # the watch shows its new shard, which ends the move
            logger.info("a node is not handed over now", extra={"node": node, "why": answer.text})

    def _patch_when_ours(self, node: str, record: HandedOver) -> ApiAnswer:
        """The version is read first: a node that changed meanwhile, its label perhaps, is looked at again."""
        answer = self._send("GET", node, None)
        if not answer.is_success:
            return answer
        version = msgspec.json.decode(answer.body, type=_Node).metadata.resource_version
        with self._locked():
            is_same = self._ownership.shard(node) == record.source and self._ownership.digest(node) == record.pods
        if not is_same or not self._may_act(record.source):
            return ApiAnswer(0, text="it has changed, or this replica does not own it any more")
        return self._send("PATCH", node, handing_over(version, record))

    def _ask(self, leader_shard: int) -> None:
        now = self._clock()
        with self._locked():
            self._wants = {node: want for node, want in self._wants.items() if now < want[1]}
            foreign = [node for node in self._wants if self._ownership.why_not(node)] if leader_shard >= 0 else []
        self._asked = {node: wish for node, wish in self._asked.items() if node in foreign}
        for node in foreign:
            known = self._asked.get(node)
            if known is not None and known.to == leader_shard and self._wall() < known.until - self._loan / 2:
                continue
            if self._clock() - now > _STEP_SECONDS:
                break
            wish = LoanRequest(leader_shard, self._wall() + self._loan)
            answer = self._send("PATCH", node, wanting(wish))
            if answer.is_success:
                self._asked[node] = wish
            logger.info("the loan of a node is asked for", extra={"node": node, "why_not": answer.text})

    def _return(self) -> None:
        """Begin to hand nodes back that were lent to us, once no unit waits for them."""
        with self._locked():
            for node, record in self._ownership.lent():
                if node not in self._wants:
                    self.begin(node, record.home)

    def _end(self, node: str) -> None:
        del self._moves[node]
        self._ownership.stay(node)

    def _send(self, method: str, node: str, body: bytes | None) -> ApiAnswer:
        path = f"/api/v1/nodes/{quote(node, safe='')}"
        return send(self._api, method, path, body, content_type=MERGE, seconds=_REQUEST_SECONDS)
