"""`python -m dashboards`: write every generated file anew, or with --check say which are not what the code makes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from base.errors import InputError
from dashboards.alerting import RUNBOOKS
from dashboards.alerting import files as alerting_files
from dashboards.alerting.runbooks import runbook_page
from dashboards.panels import files as dashboard_files
from forecast_scheduler.settings.document import load_settings

HERE = Path(__file__).parent
PAGE = HERE.parent / RUNBOOKS


def main() -> int:
    """Exit status: 1 if --check found a file that is missing or differs."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; name the files that are not up to date")
    parser.add_argument(
        "--output", type=Path, default=HERE, metavar="DIR", help="where to write (default: %(default)s)"
    )
    parser.add_argument(
        "--runbooks",
        default=RUNBOOKS,
        metavar="URL",
        help="address of docs/operate/alerts.md that alerts link to (%(default)s)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings: prometheus.cluster goes into every query, prometheus.queries are those that are recorded, "
        "nodes above hot_share are marked and alerted of",
    )
    arguments = parser.parse_args()
    try:
        settings = load_settings(arguments.config, {})
        hot, prometheus = settings.hot_share, settings.prometheus
        texts = {
            **alerting_files(arguments.runbooks, prometheus, hot),
            **dashboard_files(prometheus.cluster, hot),
        }
    except InputError as error:
        parser.error(str(error))
    made = {arguments.output / path: text for path, text in texts.items()}
    if arguments.output == HERE and PAGE.parent.is_dir():
        made[PAGE] = runbook_page()
    if arguments.check:
        stale = sorted(str(path) for path, text in made.items() if not path.exists() or path.read_text() != text)
        for path in stale:
            print(f"{path} is not what the code makes: run make dashboards", file=sys.stderr)
        return 1 if stale else 0
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
