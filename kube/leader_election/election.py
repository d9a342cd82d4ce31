"""Who leads, decided from what was seen of the Lease and when, and from when on the new leader may decide: no I/O,
one monotonic clock.

    candidate --the Lease is free: written--> leader --renewed every retry period--> leader
        ^                                        |
        +---- another holds it, or nothing was renewed for the renew deadline -------+

As client-go's (https://pkg.go.dev/k8s.io/client-go/tools/leaderelection): clocks of two machines are never compared.
A Lease has expired when we have not seen it change for as long as it says. A leader stops writing `renew_deadline`
after it *began* to send the last renewal that was confirmed; others saw that renewal later than it was sent, and wait
longer.

    follows --leads--> reads anew --done--> decides --leads no more--> follows

The watch of a replica that waits may lag, or lie in a pause between two tries: on tables without the last bindings it
would overcommit nodes. So nodes and pods are listed once more, consistently, after the Lease was taken, and whatever
else says what a predecessor has given away. One that still runs has stopped writing by then (see above).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import LeaseRecord


class Election:
    """What one replica knows. times are of one monotonic clock, in seconds.

    identity : of this replica, of no other
    """

    def __init__(self, identity: str, options: LeaseOptions) -> None:
        self.identity, self.options = identity, options
        self._seen: LeaseRecord | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None

    @property
    def seen(self) -> LeaseRecord | None:
        """The Lease as it was last seen; None = there is none, as far as is known."""
        return self._seen

    def observe(self, record: LeaseRecord | None, now: float) -> None:
        """The Lease was read. None = there is none. A renewal of ours that was never confirmed does not count."""
        if record is None or self._seen is None or not record.is_same(self._seen):
            self._seen_at = now
        self._seen = record
        if record is None or record.holder != self.identity:
            self._renewed_at = None

    def may_take(self, now: float) -> bool:
        """Return whether this replica may write the Lease, on top of what was seen, without harm."""
        return self.expires_in(now) <= 0.0

    def expires_in(self, now: float) -> float:
        """Seconds until another's Lease may be taken, unless it is renewed; 0 = now."""
        seen = self._seen
        if seen is None or seen.holder in ("", self.identity):
            return 0.0
        return max(0.0, self._seen_at + (seen.seconds or self.options.duration) - now)

    def written(self, record: LeaseRecord, began: float, now: float) -> None:
        """The API server confirmed our write, which we began to send at `began`."""
        self._seen, self._seen_at = record, now
        self._renewed_at = began if record.holder == self.identity else None

    def leads(self, now: float) -> bool:
        """Whether we may write."""
        return self.left(now) > 0.0

    def left(self, now: float) -> float:
        """Seconds until we may not write any more, unless renewed; 0 = we may not now. For any thread."""
        renewed_at = self._renewed_at
        return 0.0 if renewed_at is None else max(0.0, renewed_at + self.options.renew_deadline - now)

    def step_down(self) -> None:
        self._renewed_at = None


class Takeover:
    """Asked by the one thread that decides, before every unit."""

    def __init__(
        self,
        *,
        leads: Callable[[], bool],
        waits_for: Callable[[], str],
        read_again: Iterable[Callable[[], Callable[[], bool]]],
        begin: Callable[[], None],
    ) -> None:
        """
        waits_for  : what has to be read before the first unit, '' = nothing any more
        read_again : each begins to read a part of the cluster anew, and returns a function that says whether that is
                     done
        begin      : called each time when all is read, before the first unit
        """
        self._leads, self._waits_for, self._read_again, self._begin = leads, waits_for, tuple(read_again), begin
        self._under_way: list[Callable[[], bool]] | None = None
        self._decides = self._was_read = False

    def may_decide(self) -> bool:
        """Quick, but for the first time."""
        if not self._leads():
            self._under_way, self._decides = None, False
            return False
        if self._decides:
            return True
        if not self._was_read and self._waits_for():
            return False
        self._was_read = True
        if self._under_way is None:
            self._under_way = [begin() for begin in self._read_again]
        if not all(is_done() for is_done in self._under_way):
            return False
        self._begin()
        self._decides = True
        return True
