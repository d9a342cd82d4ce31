"""May the rebalancer act tonight? Decided from the records of past nights alone, so that nothing else need be kept.

                     bad_nights bad nights in a row
          on  ---------------------------------------->  shadow, although `on` is configured
           ^                                                |
           |  a person: counts_from, or another mode for a night and `on` again
           +------------------------------------------------+
           |  return_after good shadow nights in a row, if it is set
           +------------------------------------------------+

Nights that could not be graded, or without moves, neither add to a row nor end it. Each record says in which mode the
night was, so that the newest alone remembers a stand-down: records may be deleted from the oldest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from base.errors import InputError
from rebalancer.options import Mode, TrustOptions
from rebalancer.trust.grade import Verdict


@dataclass(frozen=True, slots=True)
class NightRecord:
    """One night, as the status of its RebalancePlan keeps it.

    night      : local day on which the moves were to be made
    configured : what the settings said then
    mode       : what it was made in
    verdict    : None = not graded yet
    """

    night: date
    configured: Mode
    mode: Mode
    verdict: Verdict | None = None

    @property
    def stood_down(self) -> bool:
        """Whether it was made in shadow because of the nights before it."""
        return self.configured is Mode.ON and self.mode is not Mode.ON

    def as_status(self) -> dict[str, str]:
        """For the status of an API object."""
        status = {"night": self.night.isoformat(), "configured": self.configured.value, "mode": self.mode.value}
        return status if self.verdict is None else status | {"verdict": self.verdict.value}

    @classmethod
    def from_status(cls, status: Mapping[str, Any]) -> NightRecord:
        """The inverse of `as_status`. Raises InputError."""
        try:
            verdict = status.get("verdict")
            return cls(
                date.fromisoformat(status["night"]),
                Mode(status["configured"]),
                Mode(status["mode"]),
                None if verdict is None else Verdict(verdict),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the status {dict(status)!r} of a night must have night, configured and mode: delete the RebalancePlan"
            ) from error


@dataclass(frozen=True, slots=True)
class Trust:
    """mode: what the next plan may do. because: a sentence for reports, if it is less than what is configured.

    bad_nights : graded as bad in a row, up to now
    """

    mode: Mode
    because: str = ""
    bad_nights: int = 0

    @property
    def stood_down(self) -> bool:
        """Whether it is in shadow because of bad nights."""
        return bool(self.because)


def mode_from(records: Iterable[NightRecord], configured: Mode, options: TrustOptions) -> Trust:
    """Return what the rebalancer may do now.

    records : in any order; of two of one night the later in the order counts after the other
    """
    counted = [one for one in records if options.counts_from is None or one.night >= options.counts_from]
    is_down, bad, good, since = False, 0, 0, None
    for record in sorted(counted, key=lambda one: one.night):
        if record.configured is not Mode.ON:
            # A person decided this, and whatever was before is known to that person.
            is_down, bad, good = False, 0, 0
            continue
        if record.stood_down != is_down:
            # The record knows: of nights that are deleted, of a person's decision, of a verdict that came late.
            is_down, good, since = record.stood_down, 0, record.night
        if record.verdict is Verdict.BAD:
            bad, good = bad + 1, 0
        elif record.verdict is Verdict.GOOD:
            bad, good = 0, good + 1
        if not is_down and bad >= options.bad_nights:
            is_down, good, since = True, 0, record.night
        elif is_down and options.return_after is not None and good >= options.return_after:
            is_down, bad, good, since = False, 0, 0, None
    if configured is not Mode.ON or not is_down:
        return Trust(configured, bad_nights=bad)
    return Trust(Mode.SHADOW, f"stood down after {options.bad_nights} bad nights in a row, since {since}", bad)
