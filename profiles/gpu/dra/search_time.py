"""How long devices may be searched for on behalf of each namespace, and in all: other pods wait meanwhile.

What counts is the evaluation of expressions, and searches of a node that take longer than usual. Each namespace has a
second at first, and a tenth of the time from then on; all together have two seconds, and a quarter.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MOST_PAYERS: Final = 1024
_EACH: Final = (1.0, 0.1)
_ALL: Final = (2.0, 0.25)
"""Seconds that may be saved up, and those that each second adds."""


@dataclass(slots=True)
class _Account:
    most: float
    per_second: float
    left: float
    at: float

    def now(self, now: float) -> float:
        self.left = min(self.most, self.left + (now - self.at) * self.per_second)
        self.at = now
        return self.left


class SearchTime:
    """Under the lock of the tables.

    clock : seconds, monotonic
    spent : seconds so far
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.spent = 0.0
        self._refused: set[str] = set()
        self._all = self._account(_ALL)
        self._of: OrderedDict[str, _Account] = OrderedDict()

    def is_left(self, payer: str) -> bool:
        """Whether a search may go on on behalf of a namespace."""
        now, own = self.clock(), self._of.get(payer)
        return not payer or (self._all.now(now) > 0 and (own is None or own.now(now) > 0))

    def refuse(self, payer: str) -> str:
        """Why a search of this namespace ends, which `may_go_on` remembers."""
        self._refused.add(payer)
        return f"the search for devices for namespace {payer} takes too long: it goes on when others had their turn"

    def may_go_on(self) -> bool:
        """Whether a namespace that was refused has time again; says so once."""
        has_time = {payer for payer in self._refused if self.is_left(payer)}
        self._refused -= has_time
        return bool(has_time)

    def spend(self, payer: str, seconds: float) -> None:
        """Charge the seconds of a search. payer: '' = the cluster itself, which has no limit."""
        self.spent += seconds
        if not payer:
            return
        now = self.clock()
        own = self._of.setdefault(payer, self._account(_EACH))
        self._of.move_to_end(payer)
        for one in (own, self._all):
            one.left = one.now(now) - seconds
        if len(self._of) > _MOST_PAYERS:
            self._of.popitem(last=False)

    def _account(self, terms: tuple[float, float]) -> _Account:
        return _Account(*terms, terms[0], self.clock())
