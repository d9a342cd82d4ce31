"""How the attempts to place a complete group went, and when it is its turn again.

    --failed--> trying --timeout is over--> paused --pause is over--> tried once --failed--> paused ...

Placed, changed, or incomplete: as if it had never been tried. While a group is paused, smaller ones behind it are tried
on the room that it waits for; it holds nothing meanwhile, as it never does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Attempts:
    """
    first_failed : unix seconds, None = no attempt failed
    message      : of the last
    paused_at    : unix seconds
    makes_room   : victims go for the group: it does not become late, and does not pause, while it waits for them
    """

    first_failed: float | None = None
    message: str = ""
    is_late: bool = False
    paused_at: float | None = None
    makes_room: bool = False

    def failed(self, now: float, message: str, *, timeout: float, makes_room: bool = False) -> Attempts:
        # A clock that was set back begins anew.
        first = now if self.first_failed is None else min(self.first_failed, now)
        is_late = not makes_room and (self.is_late or now - first >= timeout)
        return Attempts(first, message, is_late, now if is_late else None, makes_room)

    def after(self, now: float, *, timeout: float) -> Attempts:
        """The attempts as they are at `now` if none was added: past the timeout, the group is late and pauses."""
        if self.first_failed is None or self.is_late or self.makes_room:
            return self
        if now < self.first_failed:
            return replace(self, first_failed=now)  # the clock was set back
        if now - self.first_failed < timeout:
            return self
        return replace(self, is_late=True, paused_at=now)

    def is_paused(self, now: float, *, pause: float) -> bool:
        """Whether others go first."""
        return self.paused_at is not None and 0 <= now - self.paused_at < pause


UNTRIED: Final = Attempts()
