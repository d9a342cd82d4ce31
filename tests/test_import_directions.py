"""Imports go one way: base <- forecast <- trainer, and base <- kube <- cluster <- scorer <- placement <- {tenants <-
scheduler, extender, ...} <- forecast_scheduler (which sees trainer, too).

Read from the source rather than from a running import, so that imports inside functions count too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[1]

_BELOW: Final = {
    "base": "",
    "forecast": "base",
    "trainer": "base forecast",
    "kube": "base forecast",
    "cluster": "base forecast kube",
    "serving": "base forecast kube",
    "scorer": "base forecast kube cluster serving",
    "placement": "base forecast kube cluster serving scorer",
}
_SHARED: Final = f"{_BELOW['placement']} placement"
MAY_IMPORT: Final = {
    package: {package, *below.split()}
    for package, below in {
        **_BELOW,
        "tenants": _SHARED,
        "extender": _SHARED,
        "rebalancer": _SHARED,
        "autoscaling": _SHARED,
        "admission": f"{_SHARED} tenants",  # which pods wait for a quota
        "scheduler": f"{_SHARED} tenants",
        "profiles": f"{_SHARED} tenants scheduler",
        # The advisor decides by the loop of our own scheduler: only what becomes of a decision differs.
        "advisor": f"{_SHARED} tenants scheduler profiles",
        "forecast_scheduler": (
            f"{_SHARED} tenants extender rebalancer autoscaling admission scheduler profiles advisor trainer"
        ),
    }.items()
}
"""Each package with those that it may import."""

NOT_SHIPPED: Final = {"testing": {"testing"}, "benchmarks": {"benchmarks", "testing"}, "tests": {"tests", "testing"}}
"""What is not in the wheel may import every package, and of each other only these; tests/benchmarks, benchmarks too."""

# `forecast` is pure: it knows no cluster, no metrics server and no HTTP, in either direction.
FORBIDDEN_IN_FORECAST = {
    "aiohttp",
    "fastapi",
    "httpx",
    "kubernetes",
    "kubernetes_asyncio",
    "prometheus_api_client",
    "prometheus_client",
    "requests",
    "rich",
    "socket",
    "starlette",
    "typer",
    "urllib",
    "urllib3",
    "uvicorn",
}

IMPURE: Final = ("pydantic", "fsspec", "jinja2")
SLOW_LIBRARIES = ("numpy", "sklearn", "statsmodels", "plotly", "pandas", "scipy", "pyarrow", "holidays", "fsspec")


@dataclass(frozen=True)
class Facts:
    """What the tests need of a file: a tree of each would fill the memory.

    imports : statements at any depth
    classes : names of the classes at the top
    """

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    classes: tuple[str, ...]


@cache
def facts_of(source: str) -> Facts:
    """Read a file once; imports are never inside of an expression."""
    tree = ast.parse(source)
    imports, waiting = list[ast.Import | ast.ImportFrom](), list[ast.AST]([tree])
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        inner = (ast.stmt, ast.excepthandler, ast.match_case)
        waiting += (child for child in ast.iter_child_nodes(node) if isinstance(child, inner))
    return Facts(tuple(imports), tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef)))


def imports_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and top-level package of every absolute import, at any depth."""
    for node in facts_of(source).imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.partition(".")[0]
        elif node.module and node.level == 0:
            yield node.lineno, node.module.partition(".")[0]


def offences(package: str, source: str, name: str) -> list[str]:
    """Imports of `source` that a file of `package` may not have."""
    ours = set(MAY_IMPORT) | set(NOT_SHIPPED)
    forbidden = ours - MAY_IMPORT[package] | (FORBIDDEN_IN_FORECAST if package == "forecast" else set())
    return [f"{name}:{line} imports {module}" for line, module in imports_of(source) if module in forbidden]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files, f"{package}/ holds no Python file: is this test looking in the right place?"
    found = [line for file in files for line in offences(package, file.read_text(), str(file.relative_to(ROOT)))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("package", "source", "n_offences"),
    [
        ("forecast", "import numpy\nfrom base.errors import InputError", 0),
        ("forecast", "from trainer.history.files import read_history", 1),
        ("forecast", "def f():\n    import scorer.replay", 1),
        ("forecast", "import requests, prometheus_client", 2),
        ("trainer", "import requests", 0),
        ("trainer", "from scorer import scores", 1),
        ("scorer", "import trainer", 1),
        ("scorer", "from forecast_scheduler.settings.document import Settings", 1),
        ("kube", "import scorer", 1),
        ("serving", "from scorer.service.scorer_service_settings import ServiceOptions", 1),
        ("placement", "from scheduler.profile import SchedulingProfile", 1),
        ("extender", "import placement, scorer, forecast", 0),
        ("extender", "import scheduler", 1),
        ("scheduler", "from extender.points import points_of", 1),
        ("admission", "import placement, extender", 1),
        ("forecast_scheduler", "import trainer, scorer, scheduler, forecast", 0),
        ("forecast_scheduler", "from tests import helpers", 1),
    ],
)
def test_the_check_sees_what_it_should(package: str, source: str, n_offences: int) -> None:
    assert len(offences(package, source, "file.py")) == n_offences


@pytest.mark.parametrize("package", NOT_SHIPPED)
def test_benchmarks_and_tests_share_only_testing(package: str) -> None:
    forbidden = set(NOT_SHIPPED) - NOT_SHIPPED[package]
    of_benchmarks = ROOT / "tests" / "benchmarks"
    files = [file for file in sorted((ROOT / package).rglob("*.py")) if of_benchmarks not in file.parents]
    found = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for file in files
        if any(module in (source := file.read_text()) for module in forbidden)
        for line, module in imports_of(source)
        if module in forbidden
    ]
    assert files and not found, "\n".join(found)


@cache
def modules() -> Mapping[str, tuple[Path, frozenset[str]]]:
    """Every module of ours with its file and the modules of ours that it imports."""
    files = {_module_of(file): file for package in MAY_IMPORT for file in sorted((ROOT / package).rglob("*.py"))}
    return {name: (file, frozenset(_modules_of(file.read_text(), files))) for name, file in files.items()}


def _module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _modules_of(source: str, known: Mapping[str, Path]) -> Iterator[str]:
    for node in facts_of(source).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif node.module is not None and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def test_no_files_import_each_other_in_a_circle() -> None:
    tuple(TopologicalSorter({name: imported for name, (_, imported) in modules().items()}).static_order())


def test_the_rooms_of_a_folder_and_the_files_beside_them_form_no_circle() -> None:
    """Whoever follows an import goes down, and never comes back to a room through a file beside it."""
    imported: dict[str, dict[str, set[str]]] = {}  # by folder, by room or file in it
    for name, (_, others) in modules().items():
        for other in others:
            for folder in common_folders(name, other):
                here, there = (one.removeprefix(folder + ".").partition(".")[0] for one in (name, other))
                if here != there:
                    imported.setdefault(folder, {}).setdefault(here, set()).add(there)
    circles = [f"{folder}: {circle_of(rooms)}" for folder, rooms in imported.items() if circle_of(rooms)]
    assert not circles, "\n".join(circles)


def common_folders(one: str, other: str) -> Iterator[str]:
    """Every folder that both modules are in."""
    folder = ""
    for part, same in zip(one.split(".")[:-1], other.split(".")[:-1], strict=False):
        if part != same:
            return
        folder = f"{folder}.{part}".removeprefix(".")
        yield folder


def circle_of(imported: Mapping[str, set[str]]) -> str:
    """Rooms that import each other in a circle; "" = there is none."""
    try:
        tuple(TopologicalSorter(imported).static_order())
    except CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def test_the_science_needs_no_settings_no_object_stores_and_no_templates() -> None:
    code = f"import sys\n{imports_of_all('forecast')}\nprint(*[m for m in {IMPURE} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""


def imports_of_all(package: str) -> str:
    """A statement that imports every module of a package."""
    return f"import {', '.join(name for name in modules() if name.partition('.')[0] == package)}"


def test_the_command_line_starts_without_the_slow_libraries() -> None:
    """`--help` and a mistyped option must answer at once; each command imports what it needs when it runs."""
    code = f"import sys, forecast_scheduler.cli; print(*[m for m in {SLOW_LIBRARIES} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""


def test_importing_packages_logs_nothing_and_sets_no_log_level() -> None:
    check = "assert root.level == logging.WARNING and not root.handlers, (root.level, root.handlers)"
    packages = ("base", "forecast", "trainer", "cluster", "scorer")
    lines = (f"{imports_of_all(package)}\n{check}  # {package}" for package in packages)
    code = "\n".join(("import logging\nroot = logging.getLogger()", *lines))
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == answer.stderr == ""


def test_every_public_class_name_is_defined_once() -> None:
    """A search for a class finds one answer, and a word means one thing."""
    homes: dict[str, list[str]] = {}
    for name, (file, _) in modules().items():
        for class_name in facts_of(file.read_text()).classes:
            if not class_name.startswith("_"):
                homes.setdefault(class_name, []).append(name)
    twice = [f"{name}: {', '.join(where)}" for name, where in sorted(homes.items()) if len(where) > 1]
    assert not twice, "\n".join(twice)
