"""How long our gate holds pods where advisors, webhooks or the API server fail in the middle of a burst.

    python -m benchmarks.held_pods [--rates 20,200] [--only WORDS] [--drain 5s,0s]

Two advisors and two webhooks as shipped, the real kube-scheduler, and 6 s of pods that ask for advice; after 3 s
something dies (testing/processes/gate_deaths.py). Printed are the longest time for which a pod was held beside what is
allowed, `gate_timeout` and 5 s, how many were held for longer, and how many pods came with advice.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from advisor.advice_settings import AdviseOptions
from benchmarks.harness import command_line, finish, numbers
from testing.processes.gate_deaths import ALLOWED_MORE, DEATHS, held_through


def main() -> None:
    """Print the figures; exit status 1 where a pod was held too long."""
    parser = command_line(__doc__)
    parser.add_argument("--rates", default="20,200", help="pods/s, by commas")
    parser.add_argument("--only", default="", help="deaths whose names have these words")
    parser.add_argument("--drain", default="5s,0s", help="of the advisors, for deaths by SIGTERM, by commas")
    asked = parser.parse_args()
    limit, is_kept = AdviseOptions().gate_timeout + ALLOWED_MORE, True
    print(f"{'':>62}  pods/s  held  longest (at most {limit:g} s)  over  advised")
    for rate in numbers(asked.rates):
        for name, death in DEATHS.items():
            if asked.only not in name:
                continue
            for drain in asked.drain.split(",") if "SIGTERM" in name else ["5s"]:
                label = f"{name}, drain {drain}" if "SIGTERM" in name else name
                with tempfile.TemporaryDirectory() as scratch:
                    advise = {"serving": {"drain": drain}}
                    held = held_through(death, Path(scratch), rate=rate, limit=limit, advise=advise)
                print(
                    f"{label:>62}  {held.rate:6.0f}  {held.n_pods:4d}  {held.longest:23.1f} s  {held.n_over:4d}  "
                    f"{held.n_advised:7d}",
                    flush=True,
                )
                is_kept = is_kept and held.n_over == 0
    finish(is_kept)


if __name__ == "__main__":
    main()
