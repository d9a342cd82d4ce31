"""Reads which services moved (YAML), from another name or from another cluster, and finds their earlier days.

- old: shop/Deployment/cart         # renamed, in this history
  new: web/Deployment/basket
- old: "*/*/*"                      # all that came from another cluster under the same names
  history: ../cluster-a/history
"""

from __future__ import annotations

import difflib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
from pydantic import field_validator, model_validator

from base.arrays import Ints
from base.errors import InputError
from base.setting_group import SettingGroup
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import EarlierDays, History
from forecast.service_key import ServiceKey
from trainer.history.user_lists import ListFile

logger = logging.getLogger(__name__)

_ANY = "*"
_SETTLED_DAYS = 28
"""After so many days here a service does without its past: what has been cleaned away by then is no error."""


class MovedService(SettingGroup):
    """A service that had another name, or ran in another cluster."""

    old: str
    """Namespace/Kind/name as it was. A part * stands for any, and stays the same in `new`."""

    new: str | None = None
    """Namespace/Kind/name as it is now. None: as it was, in the history of another cluster."""

    history: Path | None = None
    """History directory of the other cluster, as seen from the file. None: this history, which knows both names."""

    @field_validator("old", "new")
    @classmethod
    def _three_parts(cls, name: str | None) -> str | None:
        if name is not None:
            parts = name.split("/")
            if len(parts) != 3 or not all(part == _ANY or (part and _ANY not in part) for part in parts):
                raise ValueError("write Namespace/Kind/name, each a whole name or *, as in shop/Deployment/cart")
            if parts[1] in ("Job", "CronJob"):
                raise ValueError("Jobs and CronJobs are learned anew from their first night: leave them out")
        return name

    @model_validator(mode="after")
    def _goes_somewhere(self) -> MovedService:
        if [part == _ANY for part in self.old.split("/")] != [part == _ANY for part in self.now.split("/")]:
            raise ValueError(f"old {self.old} and new {self.now} need * in the same parts: * stays what it was")
        if self.history is None and self.now == self.old:
            raise ValueError("it changes nothing: give the new name, or the history of the other cluster")
        return self

    @property
    def now(self) -> str:
        return self.new or self.old

    @property
    def is_pattern(self) -> bool:
        return _ANY in self.old

    def old_key(self, new: ServiceKey) -> ServiceKey | None:
        """What a service of today was called; None if it is not meant."""
        parts = str(new).split("/")
        if new.runs_to_completion or any(p not in (_ANY, q) for p, q in zip(self.now.split("/"), parts, strict=True)):
            return None
        named = zip(self.old.split("/"), parts, strict=True)
        return ServiceKey(*(now if was == _ANY else was for was, now in named))


_FILE = ListFile(MovedService, "list of moved services", "move", "old, and new or history", "old")


@dataclass(frozen=True, slots=True)
class MovedServices:
    """A list of moved services, and where it was read."""

    path: Path
    moves: tuple[MovedService, ...]

    @classmethod
    def read(cls, path: Path) -> MovedServices:
        """The list of a file; InputError if it cannot be used."""
        moves = _FILE.read(path)
        twice = [name for name, count in Counter(move.now for move in moves).items() if count > 1]
        if twice:
            raise InputError(f"{path}: {twice[0]} comes from two places: a service has one past, leave out one of them")
        return cls(path, moves)

    def earlier_days(self, history: History, read: Callable[[Path], History]) -> EarlierDays | None:
        """The days of all moved services before they were measured here; None if there are none.

        read : the history of another cluster, with the calendar of `history`
        Raises InputError if an old name or an old history is not found, and the service is still young here.
        """
        first_slot = _first_slots(history)
        by_name = {str(service): row for row, service in enumerate(history.services)}
        sources: dict[Path | None, History] = {None: history}
        found: dict[int, tuple[History, int]] = {}  # exact names come first, then patterns in their order
        for number, move in sorted(enumerate(self.moves, start=1), key=lambda item: item[1].is_pattern):
            # Lists and histories may have thousands of names: only a pattern is compared with all of them.
            rows = by_name.values() if move.is_pattern else [by_name[move.now]] if move.now in by_name else []
            olds = {row: key for row in rows if (key := move.old_key(history.services[row])) is not None}
            if not olds and not move.is_pattern:
                logger.warning("a moved service is not in the history", extra={"service": move.now})
            lacks_days = first_slot > (0 if move.history is None else -1)
            olds = {row: key for row, key in olds.items() if row not in found and lacks_days[row]}
            if not olds:
                continue
            try:
                if move.history not in sources:
                    sources[move.history] = read(self.path.parent / str(move.history))
                source = sources[move.history]
                known = {key: row for row, key in enumerate(source.services)}
                if not move.is_pattern and (old := next(iter(olds.values()))) not in known:
                    raise InputError(_unknown(old, move.history, source.services))
            except InputError as error:
                message = f"{self.path}, move {number} ({move.old}): {error}"
                young = history.n_days - first_slot[list(olds)] // SLOTS_PER_DAY < _SETTLED_DAYS
                if young.any():
                    raise InputError(message) from error
                logger.warning("the past of a moved service is not used", extra={"why": message})
                continue
            found |= {row: (source, known[key]) for row, key in olds.items() if key in known}
        return _collected(history, found, first_slot) if found else None


def _first_slots(history: History) -> Ints:
    """The first half hour of the history in which each service was measured, or its end: (n_services,)."""
    measured = np.any(np.isfinite(history.usage_per_pod), axis=1).reshape(len(history.services), -1)
    first: Ints = np.where(measured.any(axis=1), measured.argmax(axis=1), measured.shape[1]).astype(np.int64)
    return first


def _unknown(old: ServiceKey, directory: Path | None, services: Sequence[ServiceKey]) -> str:
    close = difflib.get_close_matches(str(old), map(str, services), n=1)
    guess = f" (typo of {close[0]}?)" if close else ""
    return f"{directory or 'this history'} has no service {old}{guess}: correct the name, or name its history"


def _collected(history: History, found: dict[int, tuple[History, int]], first_slot: Ints) -> EarlierDays | None:
    """The tables of all moved services on common days, without what is measured here."""
    first_day = min(source.days[0] for source, _ in found.values())
    last_day = min(max(source.days[-1] for source, _ in found.values()), history.days[-1])
    n_days = (last_day - first_day).days + 1
    if n_days < 1:
        return None
    n_resources, shape = history.usage_per_pod.shape[1], (n_days, SLOTS_PER_DAY)
    usage, variance = (np.full((len(found), n_resources, *shape), np.nan, dtype=np.float32) for _ in range(2))
    replicas = np.full((len(found), *shape), np.nan, dtype=np.float32)
    requests = np.full((len(found), 2, n_days), np.nan)
    slots = np.arange(n_days * SLOTS_PER_DAY) - (history.days[0] - first_day).days * SLOTS_PER_DAY
    for place, (row, (source, old)) in enumerate(found.items()):
        offset = (source.days[0] - first_day).days
        days = slice(0, max(0, min(source.n_days, n_days - offset)))
        there = slice(offset, offset + days.stop)
        usage[place, :, there] = source.usage_per_pod[old, :, days]
        variance[place, :, there] = source.pod_variance[old, :, days]
        replicas[place, there] = source.replicas[old, days]
        requests[place, :, there] = source.daily_requests[old, :, days]
        here = (slots >= first_slot[row]).reshape(shape)
        usage[place][:, here] = variance[place][:, here] = replicas[place][here] = np.nan
    return EarlierDays(
        days=tuple(first_day + timedelta(days=n) for n in range(n_days)),
        service=np.array(list(found), dtype=np.int64),
        usage_per_pod=usage,
        replicas=replicas,
        pod_variance=variance,
        daily_requests=requests,
    )
