"""The page that `report --html` wrote, as it lies on the disk, and the policy under which a browser shows it.

Its scripts are inline, which the policy of all other answers forbids. So it is shown in an origin of its own (sandbox):
whatever is in the file, it can read neither the token of the scorer's page nor an answer of the scorer, and fetches
nothing. https://www.w3.org/TR/CSP3/#directive-sandbox
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from serving.errors import Refusal

REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

MOST_BYTES = 64 * 2**20
"""`report` stays far below; another file named by mistake gives an error instead of filling the memory."""


def report_written(path: Path | None) -> datetime | None:
    """When the report was written; None if there is none, or not yet."""
    if path is None:
        return None
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


def read_report(path: Path | None) -> bytes:
    """The page. Raises Refusal (404) where there is none."""
    if path is None:
        raise Refusal(404, "no report is offered: set scorer.report to the file that report --html writes")
    try:
        with path.open("rb") as file:
            page = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise Refusal(404, "there is no report yet: forecast-scheduler report --html writes it") from error
    except OSError as error:
        raise Refusal(404, f"the report cannot be read ({error.strerror}): see to the file of scorer.report") from error
    if len(page) > MOST_BYTES:
        raise Refusal(404, f"the report is larger than {MOST_BYTES >> 20} MiB: write it with a smaller --top")
    return page
