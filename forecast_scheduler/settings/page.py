"""Writes docs/use/settings.md: every setting with its default, what is allowed, and what its class says about it.

python -m forecast_scheduler.settings.page
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forecast_scheduler.settings.known_keys import Section, known_sections

PAGE: Final = Path(__file__).parents[2] / "docs" / "use" / "settings.md"

_HEAD: Final = """# Settings

`python -m forecast_scheduler.settings.page` writes this page from the settings classes. Change the text there.

From weakest to strongest: defaults, the file of `--config` (or of `FORECAST_SCHEDULER_CONFIG`), environment variables,
options of the command. A key `replay.days` is `FORECAST_SCHEDULER_REPLAY__DAYS` in the environment. An unknown key is
refused wherever it stands. A duration is a number of seconds, or text such as `200ms`, `30s`, `5m`, `1h30m` or `2d`.
command-line.md has an example of a file.
"""


def settings_page() -> str:
    """Return docs/use/settings.md as its text is by the classes now."""
    return "\n".join([_HEAD, *(line for section in known_sections() for line in _lines(section))])


def _lines(section: Section) -> Iterator[str]:
    if section.path:
        yield f"## {section.path}\n"
        yield f"{_cell(section.meaning)}\n"
    if section.keys:
        rows = [f"| `{one.key}` | {one.default} | {one.allowed} | {_cell(one.meaning)} |" for one in section.keys]
        yield "\n".join(["| key | default | allowed | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _cell(text: str) -> str:
    """One line, in which pages are links."""
    line = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"\bdocs/([\w-]+\.md)", r"[\1](\1)", line)


if __name__ == "__main__":
    PAGE.write_text(settings_page(), encoding="utf-8")
