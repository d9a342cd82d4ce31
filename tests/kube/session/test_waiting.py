"""No thread waits for the event loop of a session without a time limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_import_directions import MAY_IMPORT, ROOT


def waits_without_limit(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of `.result()` without a timeout, and of concurrent.futures.wait with none."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        named = {keyword.arg for keyword in node.keywords}
        if isinstance(node.func, ast.Attribute) and node.func.attr == "result" and not node.args and not named:
            yield node
        if isinstance(node.func, ast.Name) and node.func.id == "wait" and len(node.args) < 2 and not named:
            yield node


def test_the_search_finds_what_it_is_for() -> None:
    source = "a.submit(b).result(); c.result(5); d.result(timeout=5); wait(e); wait(e, 5)"
    assert [node.col_offset for node in waits_without_limit(ast.parse(source))] == [0, source.index("wait(e)")]


def test_shipped_code_waits_with_a_limit() -> None:
    """Without exception: one whose work is over says result(0)."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in sorted(MAY_IMPORT)
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in waits_without_limit(ast.parse(path.read_text()))
    ]
    assert found == [], "kube.session.session_calls.call waits with a limit"
