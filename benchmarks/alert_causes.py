"""How many notifications does one cause raise? Causes are played before a real Prometheus and a real Alertmanager.

Every part of an installation is a target; testing/alerting/causes.py has the causes, each with all that follows from
it. Alertmanager has no inhibit_rules: kube-prometheus has some, others do not. Rules are those that are shipped, or
those of --rules, for example of an older version. Everything runs faster than
time by a factor, durations of the rules and of Alertmanager included; the seconds of the table are those of real time,
with scrapes and evaluations every 30 s (held pods: 10 s) and a group wait of 30 s, as kube-prometheus has them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.harness import command_line
from testing.alerting.causes import CAUSES
from testing.alerting.playing import Played, play

_ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print a row for each cause."""
    parser = command_line(__doc__)
    parser.add_argument("--rules", type=Path, default=_ROOT / "dashboards" / "prometheus" / "alerts.yaml")
    parser.add_argument("--factor", type=float, default=30.0, help="times faster than time goes (default: %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        played = play(CAUSES, arguments.rules, Path(directory), factor=arguments.factor)
    print("| cause | alerts | raised | notifications | fires after | sent after |\n|---|---|---|---|---|---|")
    print("\n".join(map(_row, played)))
    n_alerts = sum(one.raised for one in played)
    n_sent = sum(one.notifications for one in played)
    print(f"\n{sum(bool(one.cause.alert) for one in played)} causes: {n_alerts} alerts, {n_sent} notifications")


def _row(played: Played) -> str:
    alerts = ", ".join(f"{name} ({severity})" for name, severity in played.fired)
    after = (f"{one:.0f} s" if one is not None else "" for one in (played.fired_after, played.sent_after))
    return f"| {played.cause.name} | {alerts} | {played.raised} | {played.notifications} | {' | '.join(after)} |"


if __name__ == "__main__":
    main()
