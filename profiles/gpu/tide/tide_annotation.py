"""The tide's moves of a workload, kept as an annotation on it: the next process counts the same moves of the day, and
knows how large it was before.

    forecast-scheduler.io/tide-moves: {"at":"2026-11-22T18:00:00Z","moves":3,"from":8,"to":4,"size":16,"gpus":2,...}

It is written before the workload is scaled. One whose `from` is what the workload still has was not carried out: the
scheduler was stopped in between, and it does not count. The workload's generation shows whether it was, and another
client reverted it: the move is one change of what it asks for, and taking it back another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from kube.decoding.watched_kinds import REFUSED
from kube.objects.objects import ANNOTATION_PREFIX
from profiles.gpu.tide.tide_plan import TideMove

MOVES: Final = ANNOTATION_PREFIX + "tide-moves"

_LATEST: Final = 253_000_000_000.0
"""Unix seconds of the year 9987: each zone has a local time then."""

_Count = Annotated[int, Meta(ge=0, le=1_000_000)]


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """
    at            : unix seconds of the last move
    moves         : of the day of `at`
    before, after : replicas
    size          : replicas before the tide first moved it
    gpus, pool    : as its pods last had them: a workload that was stopped has no pods to look at
    gang          : replicas that its gang needed, likewise
    generation    : of the workload before the move, 0 = unknown
    """

    at: float = -math.inf
    moves: int = 0
    before: int = 0
    after: int = 0
    size: int = 0
    gpus: float = 0.0
    pool: str = ""
    gang: int = 0
    generation: int = 0

    def seen_with(self, replicas: int, dwell: float, generation: int = 0) -> MoveRecord:
        """Without a move that was not carried out: what was so before it still is, and growing may be tried again at
        once. replicas, generation: of the workload now."""
        if self.before == self.after or replicas != self.before:
            return self
        if self.generation and generation >= self.generation + 2:
            return self  # carried out, and reverted by another client
        return replace(self, at=self.at - dwell, moves=max(0, self.moves - 1), after=self.before)


NOTHING_DONE: Final = MoveRecord()


class _Json(msgspec.Struct):
    at: datetime
    moves: _Count
    before: _Count = msgspec.field(name="from", default=0)
    after: _Count = msgspec.field(name="to", default=0)
    size: _Count = 0
    gpus: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    pool: Annotated[str, Meta(max_length=512)] = ""
    gang: Annotated[int, Meta(ge=0)] = 0
    generation: Annotated[int, Meta(ge=0)] = 0


_DECODER: Final = msgspec.json.Decoder(_Json)


def read_record(text: str | None) -> MoveRecord:
    """NOTHING_DONE where there is none, or none that can be read: then the day's moves are counted anew."""
    if not text:
        return NOTHING_DONE
    try:
        said = _DECODER.decode(text)
        at = said.at.timestamp() if said.at.tzinfo is not None else said.at.replace(tzinfo=UTC).timestamp()
    except (*REFUSED, ValueError, OverflowError):
        return NOTHING_DONE
    if not 0 <= at <= _LATEST:
        return NOTHING_DONE  # a user can write any: some have no local day in some zones
    return MoveRecord(
        at, said.moves, said.before, said.after, said.size, said.gpus, said.pool, said.gang, said.generation
    )


def record_after(move: TideMove, *, size: int, moves: int, pool: str, gang: int = 0, generation: int = 0) -> MoveRecord:
    """moves: of the day, this one included."""
    return MoveRecord(move.at, moves, move.before, move.after, size, move.training.gpus, pool, gang, generation)


def written(record: MoveRecord) -> str:
    """The annotation."""
    at = datetime.fromtimestamp(int(record.at), UTC)
    said = _Json(
        at,
        record.moves,
        record.before,
        record.after,
        record.size,
        record.gpus,
        record.pool,
        record.gang,
        record.generation,
    )
    return msgspec.json.encode(said).decode()
