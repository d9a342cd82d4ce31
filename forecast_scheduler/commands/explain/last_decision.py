"""`explain --last`: why a pod got its node, from the decision log of the component that placed it."""

from __future__ import annotations

import glob
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from base.errors import InputError
from forecast_scheduler.reports.table_format import short_duration, titled_table
from forecast_scheduler.settings.document import Settings
from placement.decisions.decision import Decision, note_of
from placement.decisions.decision_log import STDOUT
from placement.decisions.decision_log_reader import read_decisions


def log_files(named: Sequence[Path], settings: Settings) -> Sequence[Path]:
    """Return the files named, else those that the settings have extender and loops write, with rotated ones.

    Raises InputError if there is none.
    """
    if named:
        return named
    logs = [options.log for options in (settings.extender.decisions, settings.schedule.decisions)]
    paths = [path for path in map(Path, filter(None, logs)) if path != STDOUT]
    files = [file for path in paths for file in (path, *_rotated(path)) if file.is_file()]
    if not files:
        where = " nor ".join(str(path) for path in paths)
        found = f"there is no file {where}" if paths else "the settings name no decision log in a file"
        raise InputError(f"{found}: pass --decisions FILE, or - with `kubectl logs` of the component piped in")
    return files


def _rotated(path: Path) -> list[Path]:
    """Return its older files: NAME.1 as we rotate, NAME.1.gz as logrotate does."""
    return sorted(path.parent.glob(f"{glob.escape(path.name)}.[0-9]*"))


def last_decision(pod: str, files: Sequence[Path]) -> Decision:
    """Return the latest decision about namespace/name. Raises InputError if the logs hold none."""
    read = read_decisions(files)
    of_pod = [decision for decision in read.decisions if decision.pod == pod]
    if of_pod:
        return of_pod[-1]
    first, last = (_moment(read.decisions[at].time) for at in (0, -1))
    names = ", ".join(str(file) for file in files)
    raise InputError(
        f"{names} holds {len(read.decisions)} decisions from {first} to {last}, none about {pod}: name the log of the "
        "component that placed it, or ask without --last where it would go now"
    )


def decision_lines(decision: Decision) -> list[str]:
    """Return what the log says, a line each."""
    lines = [f"{decision.pod} ({decision.service}): {note_of(decision)}"]
    if decision.is_shadow:
        lines.append("shadow: the advice was not given")
    took = f"{1000 * decision.seconds:.1f} ms" if decision.seconds else "a time that the log does not hold"
    waited = max(0.0, decision.time - decision.advised_at)
    lines.append(f"decided {_moment(decision.advised_at)} in {took}, seen bound {short_duration(waited)} later")
    if decision.model_age_seconds is not None and math.isfinite(decision.model_age_seconds):
        lines.append(f"the first day of the model had begun {decision.model_age_seconds / 3600:.0f} h before")
    lines.append(f"degradation level: {decision.level or 'not known'}")
    return lines


def decision_table(decision: Decision) -> Table | None:
    """Return the best nodes with their points; None = the log has none."""
    if not decision.top:
        return None
    table = titled_table("The best nodes then", "node", ">points", "", wrap_first=False)
    for name, points in decision.top.items():
        notes = [*(["advised"] if name == decision.advised_node else []), *(["bound"] if name == decision.node else [])]
        table.add_row(escape(name), str(points), ", ".join(notes))
    return table


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
