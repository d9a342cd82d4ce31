"""How scrapes of many shapes are read: right, explicitly not, or wrong. Prints a table for each kind.

    python -m benchmarks.shapes                     # bends of a healthy scrape (testing.scrapes), healthy shapes
    python -m benchmarks.shapes --cases DIR         # cases made after bug reports: `train` and its learned load
    python -m benchmarks.shapes --metrics DIR       # bodies of /metrics from other people's clusters
    python -m benchmarks.shapes --large             # `doctor --prometheus` of 5,000 nodes and 100,000 pods

Every part reads a real Prometheus. `--only TEXT` takes the names that contain a text. Exit status 1 if any is wrong.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.shapes_cases import RULES, run_case
from benchmarks.shapes_large import look_at_large_cluster
from benchmarks.shapes_metrics import RIGHT, read_body
from testing.scrapes.bends import BENDS, HEALTHY
from testing.scrapes.cluster import STEP_SECONDS, healthy_cluster
from testing.scrapes.judging import Reading, read

Row = tuple[str, str, str]
"""Name, verdict (right, explicit, wrong), what was found."""


def bend(name: str) -> Row:
    """Return name, verdict and remark of one bend, read from a Prometheus of its own."""
    one = BENDS[name]
    cluster = healthy_cluster(int(time.time()) // STEP_SECONDS * STEP_SECONDS, one.domain)
    with tempfile.TemporaryDirectory() as directory:
        reading = read(cluster, one.change(cluster.series), Path(directory))
    verdict = one.verdict(reading)
    if verdict not in ("right", "explicit"):
        return name, "wrong", verdict
    return name, verdict, _said(reading, one.says) if one.says else f"{len(reading.findings)} findings"


def case(folder: Path) -> Row:
    """Return name, verdict and error of one case, trained on as a user would."""
    words, judge = RULES[folder.name[:2]]
    with tempfile.TemporaryDirectory() as directory:
        found = judge(run_case(folder, Path(directory)))
    error = f"error {found.error:.1%}, " if math.isfinite(found.error) else ""
    return folder.name, found.word, f"{words}: {error}{' '.join(found.detail.split())}"


def body(file: Path) -> Row:
    """Return name, verdict and what was read of one body of /metrics."""
    found = read_body(file)
    words, rule = RIGHT.get(file.name[:2], ("", None))
    measured = [
        f"{kind} {column.partition('_')[0]} {number} ({total:.4g})"
        for kind, figures in (("pods", found.pods), ("nodes", found.nodes))
        for column, (number, total) in figures.items()
        if number
    ]
    said = [found.refused[:90], *(one[:90] for one in found.said if "found nothing" not in one)]
    verdict = "read" if rule is None else "right" if rule(found) else "wrong"
    return file.name, verdict, "; ".join(filter(None, [words, ", ".join(measured), *said]))


def show(title: str, rows: Iterable[Row]) -> bool:
    """Print a table as it comes, and how many of each verdict; whether none is wrong."""
    counts: Counter[str] = Counter()
    print(f"\n{title}", flush=True)
    for name, verdict, found in rows:
        counts[verdict] += 1
        print(f"  {name:<58} {verdict:<9} {found}", flush=True)
    print(f"  {sum(counts.values())}: " + ", ".join(f"{number} {word}" for word, number in counts.most_common()))
    return not counts["wrong"]


def main() -> int:
    """Run the parts that are asked for; the bends where none is."""
    parser = command_line(__doc__)
    parser.add_argument("--cases", type=Path, metavar="DIR")
    parser.add_argument("--metrics", type=Path, metavar="DIR")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--nodes", type=int, default=5000, help="of --large (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=100_000, help="of --large (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    good = True
    asked = arguments.cases or arguments.metrics or arguments.large
    with ProcessPoolExecutor(arguments.processes) as processes:
        if not asked:
            names = [name for name in BENDS if arguments.only in name]
            found = list(processes.map(bend, names))
            good &= show("bends", found)
            good &= show("healthy shapes: no finding", [row for row in found if row[0] in HEALTHY])
        for directory, what, one in ((arguments.cases, "cases", case), (arguments.metrics, "bodies of /metrics", body)):
            if directory is None:
                continue
            if not directory.is_dir():
                print(f"{directory} is not there: {what} are SKIPPED", file=sys.stderr)
                continue
            files = sorted(
                file for file in directory.iterdir() if file.name[:2].isdigit() and arguments.only in file.name
            )
            files = [file for file in files if what != "cases" or file.name[:2] in RULES]
            good &= show(what, processes.map(one, files))
    if arguments.large:
        print(look_at_large_cluster(arguments.nodes, arguments.pods))
    return 0 if good else 1


def _said(reading: Reading, text: str) -> str:
    """The sentence that contains a text."""
    return next(one for one in (reading.refused, *reading.findings, *reading.notes) if text in one)[:120]


if __name__ == "__main__":
    sys.exit(main())
