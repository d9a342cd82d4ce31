"""Every file, module, class and setting that documentation, docstrings and comments name exists."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from forecast_scheduler.settings.document import Settings

ROOT: Final = Path(__file__).parents[2]
TRACKED: Final = tuple(
    subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
)
MODULES: Final = {
    name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): name
    for name in TRACKED
    if name.endswith(".py") and (ROOT / name).exists()
}
PACKAGES: Final = sorted({name.partition(".")[0] for name in MODULES if "." in name})
FOLDERS: Final = {name.replace("/", ".") for file in TRACKED for name in map(str, Path(file).parents)}
ENDS_OF_PATHS: Final = {file[start:] for file in TRACKED for start in [0, *(m.end() for m in re.finditer("/", file))]}

_FILE: Final = re.compile(r"(?<![\w/.:*<-])(?:[ab]/)?((?:[\w-]+/)*[a-z][\w-]*\.py)\b")
_DOTTED: Final = re.compile(rf"(?<![\w/.:\"@-])((?:{'|'.join(PACKAGES)})(?:\.\w+)+)")
_CLASS: Final = re.compile(r"(?<![\w/.:\"-])([a-z]\w*)\.([A-Z]\w*[a-z]\w*)\b")
_NO_NAMES: Final = frozenset({"md", "py", "html", "json", "yaml", "crt", "key", "com", "io", "x", "enabled"})
"""What follows a dot in names of files, hosts and values of the chart."""
_NO_MODULES: Final = {"cluster.state", "forecast_scheduler.plugins"}
"""A variable, and a group of entry points."""
_OF_OTHERS: Final = {"merge_alloc_discrete.py", "make.py"}
"""Files of other projects, and of cases that users write."""
_TO_BE_WRITTEN: Final = {"two_weeks_max.py", "fewest_pods.py", "rack_power.py"}
"""Files that a how-to has the reader write."""


def prose() -> list[str]:
    return [
        name
        for name in TRACKED
        if (name.endswith(".md") and name != "CHANGELOG.md")
        or (name in MODULES.values() and not name.startswith(("tests/", "data/")))
    ]


def test_what_prose_names_exists() -> None:
    wrong = {f"{name}: {word}" for name in prose() for text in texts(ROOT / name) for word in unknown(text)}
    assert not wrong, "these names in prose do not exist:\n" + "\n".join(sorted(wrong))


def test_the_check_sees_names_that_do_not_exist() -> None:
    text = "See queue/nothing.py, kube.client.nothing, cycle.Resemblance and scorer.no_key, beside scorer.usage_every"
    assert set(unknown(text)) == {"queue/nothing.py", "kube.client.nothing", "cycle.Resemblance", "scorer.no_key"}


def texts(file: Path) -> Iterator[str]:
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        yield source
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def unknown(text: str) -> Iterator[str]:
    """Names in a text that look like ours and are none."""
    for match in _FILE.finditer(text):
        if match[1] not in ENDS_OF_PATHS and Path(match[1]).name not in _OF_OTHERS | _TO_BE_WRITTEN:
            yield match[1]
    for match in _DOTTED.finditer(text):
        if match[1] not in _NO_MODULES and match[1].rpartition(".")[2] not in _NO_NAMES and not is_known(match[1]):
            yield match[1]
    for match in _CLASS.finditer(text):
        homes = [module for module in MODULES if module.rpartition(".")[2] == match[1]]
        if homes and not any(match[2] in members(module) for module in homes):
            yield match[0]


def is_known(dotted: str) -> bool:
    """Whether this is a folder, a module, something in one, or a setting."""
    if dotted in FOLDERS or dotted in MODULES or is_setting(dotted.split(".")):
        return True
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        if (module := ".".join(parts[:length])) in MODULES and length > 1:
            inner = parts[length:]
            return inner[0] in members(module) and (len(inner) < 2 or inner[1] in members(module)[inner[0]])
    return False


def is_setting(path: list[str]) -> bool:
    at: object = Settings
    for key in path:
        if not (isinstance(at, type) and issubclass(at, BaseModel)):
            return True  # below a mapping the user names the keys
        if key not in at.model_fields:
            return False
        at = at.model_fields[key].annotation
    return True


@cache
def members(module: str) -> dict[str, set[str]]:
    """What a module defines or imports, with the names inside of classes."""
    found: dict[str, set[str]] = {}
    for node in ast.parse((ROOT / MODULES[module]).read_text(encoding="utf-8")).body:
        for name in _names(node):
            inner = node.body if isinstance(node, ast.ClassDef) else ()
            found[name] = {word for one in inner for word in _names(one)}
    return found


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.Assign():
            yield from (one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
