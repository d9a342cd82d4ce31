"""Writes docs/use/settings.md: every setting with its default, what is allowed, and what its class says about it.

python -m forecast_scheduler.settings.page
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from forecast_scheduler.settings.known_keys import known_sections

PAGE: Final = Path(__file__).parents[2] / "docs" / "use" / "settings.md"

_HEAD: Final = """# Settings

`python -m forecast_scheduler.settings.page` writes this page from the settings classes. Change the text there. To find
a setting by words: `forecast-scheduler settings WORD...`.

From weakest to strongest: defaults, the file of `--config` (or of `FORECAST_SCHEDULER_CONFIG`), environment variables,
options of the command. Keys under COMMAND.serving, .leader_election, .decisions and .tenants win over the groups that
commands share, wherever either stands. The settings under `scorer`, but for serving, hold for each command that has a
scorer inside: extender, advise, rebalance, autoscale, schedule. A key `replay.days` is
`FORECAST_SCHEDULER_REPLAY__DAYS` in the environment. An unknown key is refused wherever it stands; `forecast-scheduler
settings migrate FILE` rewrites a document of an earlier version. A duration is a number of seconds, or text such as
`200ms`, `30s`, `5m`, `1h30m` or `2d`.
"""

_TABLE: Final = "| key | default | allowed | meaning |\n|---|---|---|---|"


def settings_page() -> str:
    """Return docs/use/settings.md as its text is by the classes now: one table for each group of the document."""
    lines, before = [_HEAD, _TABLE], ""
    for section in known_sections():
        group = section.path.partition(".")[0]
        if group != before:
            lines.append(f"\n## {section.path}\n\n{_cell(section.meaning)}\n\n{_TABLE}")
        elif section.path:
            lines.append(f"| **{section.path}**|||{_cell(section.meaning)}|")
        before = group
        lines += [f"| `{one.key}`|{one.default}|{one.allowed}|{_cell(one.meaning)}|" for one in section.keys]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """One line, in which pages are links."""
    line = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"\bdocs/([\w-]+\.md)", r"[\1](\1)", line)


if __name__ == "__main__":
    PAGE.write_text(settings_page(), encoding="utf-8")
