"""Settings of the decision log and of events: `decisions`, and COMMAND.decisions where one differs."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import SettingGroup


class DecisionOptions(SettingGroup):
    """What is written of each decision (docs/start/shadow.md). A command that differs has the same keys under
    COMMAND.decisions."""

    log: str | None = None
    """File of JSON lines, - for standard output. None: no log; `--decisions`."""

    max_bytes: int = Field(default=100 * 2**20, ge=0)
    """The file is rotated at this size. 0: never."""

    keep: int = Field(default=5, ge=0)
    """Rotated files that are kept."""

    events: bool = True
    """Write an event for the pod; never in shadow mode or a dry run."""

    events_per_second: float = Field(default=5.0, gt=0)
    """More decisions than this get no event."""
