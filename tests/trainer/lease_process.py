"""A process that wants the lease; started by test_lease.

    python -m tests.trainer.lease_process START_TIME HOLD_SECONDS LEASE_SECONDS URL...

Waits for START_TIME (seconds since 1970), so that several begin at once, and goes for one lease after the other, each a
second after it let the one before go; prints "in", "held" or "lost" for each.
"""

from __future__ import annotations

import sys
import time

from trainer.run_lease import LeaseHeld, LeaseLost, hold_lease


def main(start: str, hold: str, seconds: str, *urls: str) -> None:
    for round_, url in enumerate(urls):
        time.sleep(max(0.0, float(start) + round_ * (float(hold) + 1) - time.time()))
        try_one(url, float(hold), float(seconds))


def try_one(url: str, hold: float, seconds: float) -> None:
    try:
        with hold_lease(url, seconds=seconds) as check:
            print("in", flush=True)
            time.sleep(hold)
            check()
    except LeaseHeld:
        print("held", flush=True)
    except LeaseLost:
        print("lost", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
