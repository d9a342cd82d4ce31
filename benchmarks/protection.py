"""What the tests protect: coverage by package, and how many of 60 seeded faults they find, before and after a change.

    python -m benchmarks.protection cover TREE DATA PYTEST_ARGUMENTS ...   run its tests, remember which ran each line
    python -m benchmarks.protection report TREE DATA [TREE DATA]           lines and branches covered, by package
    python -m benchmarks.protection mutants TREE DATA [TREE DATA]          each fault against the tests of its line

TREE is a checkout with its .venv, which needs pytest-cov. DATA is the file of trainer/prometheus/day_remarks.py that
`cover` writes; processes that tests start are measured, too. A fault is found if a test that ran its line fails in
time. The tests run in a copy of the tree: first those that run the fewest lines, at most 200, for 90 seconds at most.
With two trees a fault is seeded in both, in files that are the same in both. Options stand before the trees.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import command_line
from benchmarks.mutants import Mutant, mutants_of

PACKAGES: Final = (
    "base", "forecast", "trainer", "kube", "cluster", "serving", "scorer", "placement", "tenants",
    "extender", "scheduler", "profiles", "advisor", "rebalancer", "autoscaling", "admission", "forecast_scheduler",
)  # fmt: skip
SEEDED: Final = ("placement", "scheduler/cycle", "scheduler/binding", "trainer/prometheus", "forecast")
_CONFIGURATION: Final = """
[run]
branch = True
parallel = True
relative_files = True
source = {packages}
patch = subprocess
    _exit
concurrency = thread
    multiprocessing
data_file = {data}
disable_warnings = no-data-collected,module-not-measured,module-not-imported,already-imported
"""
_MOST_SECONDS: Final = 90
_MOST_TESTS: Final = 200


@dataclass(frozen=True)
class Tree:
    """A checkout, and what `cover` has measured of it."""

    root: Path
    data: Path

    def run(self, module: str, *arguments: object, within: Path | None = None, seconds: float | None = None) -> int:
        """Return the status of a module of its environment, run in it or in a copy of it; -1 if it takes too long."""
        python = self.root.resolve() / ".venv" / "bin" / "python"
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        command = [str(python), "-m", module, *map(str, arguments)]
        said = None if within is None else subprocess.DEVNULL
        try:
            done = subprocess.run(command, cwd=within or self.root, env=environment, stdout=said, timeout=seconds)
        except subprocess.TimeoutExpired:
            return -1
        return done.returncode


def cover(tree: Tree, arguments: Sequence[str]) -> int:
    """Run pytest under trainer/prometheus/day_remarks.py and write the tree's data. Returns the status of pytest."""
    with tempfile.TemporaryDirectory() as directory:
        parts, rcfile = Path(directory, "parts"), Path(directory, "coverage.ini")
        parts.mkdir()
        rcfile.write_text(_CONFIGURATION.format(packages=",".join(PACKAGES), data=parts / "data"))
        measured = ["--cov", f"--cov-config={rcfile}", "--cov-context=test", "--cov-report="]
        # A process that is killed leaves half a file behind, which trainer/prometheus/day_remarks.py warns of.
        warnings = ["-W", "ignore::pytest.PytestUnraisableExceptionWarning"]
        status = tree.run("pytest", *measured, *warnings, *arguments)
        # pytest-cov has combined what its workers wrote; processes that ended later have written beside it.
        tree.run("coverage", "combine", "--quiet", "--append", f"--data-file={parts / 'data'}", parts)
        shutil.copy(parts / "data", tree.data)
    return status


def shares(tree: Tree) -> dict[str, tuple[float, float]]:
    """Return the percentage of lines and of branches that are covered, by package and in all."""
    with tempfile.TemporaryDirectory() as directory:
        report, rcfile = Path(directory, "report.json"), Path(directory, "coverage.ini")
        rcfile.write_text("[run]\nrelative_files = True\n")  # as the data have them
        data = f"--data-file={tree.data.resolve()}"
        tree.run("coverage", "json", "--quiet", f"--rcfile={rcfile}", data, "-o", report)
        files: Mapping[str, Mapping[str, Any]] = json.loads(report.read_text())["files"]
    counts: Counter[tuple[str, str]] = Counter()
    for file, found in files.items():
        for name in (file.partition("/")[0], "all"):
            counts.update({(name, what): n for what, n in found["summary"].items() if isinstance(n, int)})

    def share(name: str, part: str, whole: str) -> float:
        return 100 * counts[name, part] / max(counts[name, whole], 1)

    return {
        name: (share(name, "covered_lines", "num_statements"), share(name, "covered_branches", "num_branches"))
        for name in (*PACKAGES, "all")
    }


def tests_by_line(tree: Tree, file: str) -> dict[int, list[str]]:
    """Return the tests that ran each line of a file, without the phase and the case of each."""
    from coverage import CoverageData  # type: ignore[import-not-found, unused-ignore]  # of the bench extra

    data = CoverageData(str(tree.data))
    data.read()
    found = data.contexts_by_lineno(file)
    return {line: sorted({one.partition("|")[0] for one in contexts if one}) for line, contexts in found.items()}


def lines_by_test(tree: Tree) -> Counter[str]:
    """Return how many lines of the seeded packages each test runs."""
    counts: Counter[str] = Counter()
    for file in _seeded_files(tree.root):
        for tests in tests_by_line(tree, file).values():
            counts.update(tests)
    return counts


def choose(trees: Sequence[Tree], n: int, seed: int) -> list[tuple[str, Mutant]]:
    """Return the faults of this seed, as many in each of SEEDED, in lines that a test of the first tree runs."""
    chance, chosen = random.Random(seed), []
    for folder in SEEDED:
        candidates: list[tuple[str, Mutant]] = []
        for file in _seeded_files(trees[0].root, folder):
            texts = {(tree.root / file).read_text() if (tree.root / file).exists() else "" for tree in trees}
            if len(texts) == 1:
                covered = {line for line, tests in tests_by_line(trees[0], file).items() if tests}
                candidates += [(file, one) for one in mutants_of(texts.pop()) if one.line in covered]
        chosen += chance.sample(candidates, n // len(SEEDED))
    return chosen


def is_found(tree: Tree, copy: Path, file: str, mutant: Mutant, sizes: Mapping[str, int]) -> bool:
    """Return whether a test that ran the line of a fault fails with it. copy: of the tree, left as it was."""
    tests = sorted(tests_by_line(tree, file).get(mutant.line, []), key=lambda test: (sizes[test], test))[:_MOST_TESTS]
    if not tests:
        return False
    original = (copy / file).read_text()
    (copy / file).write_text(mutant.text)
    try:
        arguments = ("-x", "--quiet", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests)
        return tree.run("pytest", *arguments, within=copy, seconds=_MOST_SECONDS) == 1
    finally:
        (copy / file).write_text(original)


def _seeded_files(root: Path, *folders: str) -> list[str]:
    return sorted(str(path.relative_to(root)) for folder in folders or SEEDED for path in (root / folder).rglob("*.py"))


def _print_shares(trees: Sequence[Tree]) -> None:
    found = [shares(tree) for tree in trees]
    print(f"{'package':20}" + f"{'lines':>8}{'branches':>10}" * len(trees))
    for name in (*PACKAGES, "all"):
        print(
            f"{name:20}" + "".join(f"{lines:7.2f}%{branches:9.2f}%" for lines, branches in (one[name] for one in found))
        )


def _print_mutants(trees: Sequence[Tree], n: int, seed: int) -> None:
    chosen, killed = choose(trees, n, seed), [0] * len(trees)
    by_folder: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(trees) + 1))
    sizes = [lines_by_test(tree) for tree in trees]
    with tempfile.TemporaryDirectory() as directory:
        copies = [Path(directory, str(number)) for number in range(len(trees))]
        for tree, copy in zip(trees, copies, strict=True):
            shutil.copytree(tree.root, copy, ignore=shutil.ignore_patterns(".venv", ".git", ".*_cache"), symlinks=True)
        for number, (file, mutant) in enumerate(chosen):
            found = [
                is_found(tree, copy, file, mutant, size) for tree, copy, size in zip(trees, copies, sizes, strict=True)
            ]
            killed = [before + now for before, now in zip(killed, found, strict=True)]
            folder = next(one for one in SEEDED if file.startswith(f"{one}/"))
            by_folder[folder] = [before + now for before, now in zip(by_folder[folder], (1, *found), strict=True)]
            words = " ".join("found" if one else "MISSED" for one in found)
            print(f"{number:3} {file}:{mutant.line}  {mutant.before!r} -> {mutant.after!r}  {words}", flush=True)
    for folder, (of, *each) in by_folder.items():
        print(f"{folder:20}", *(f"{one} of {of}" for one in each))
    print(f"{'all':20}", *(f"{one} of {len(chosen)}" for one in killed))


def main() -> None:
    """See the docstring of the module."""
    parser = command_line(__doc__)
    parser.add_argument("what", choices=["cover", "report", "mutants"])
    parser.add_argument("trees", nargs=argparse.REMAINDER, metavar="TREE DATA ...")
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "cover":
        root, data, *arguments = asked.trees
        raise SystemExit(cover(Tree(Path(root), Path(data)), arguments))
    trees = [Tree(Path(root), Path(data)) for root, data in zip(asked.trees[::2], asked.trees[1::2], strict=True)]
    if asked.what == "report":
        _print_shares(trees)
    else:
        _print_mutants(trees, asked.mutants, asked.seed)


if __name__ == "__main__":
    main()
