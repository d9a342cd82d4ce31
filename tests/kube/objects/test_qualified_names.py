"""Keys and values of labels, as Kubernetes has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kube.objects.labels import (
    LABEL_VALUE,
    NAMESPACE,
    QUALIFIED_NAME,
    is_label_value,
    is_qualified_name,
)

CRDS = Path(__file__).parents[3] / "deploy" / "crds"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a", True),
        ("A_b.C-9", True),
        ("n" * 63, True),
        ("n" * 64, False),
        ("example.com/a", True),
        ("p" * 253 + "/" + "n" * 63, True),
        ("p" * 254 + "/n", False),
        (".".join(["p" * 63] * 4) + "/n", False),
        ("Example.com/a", False),
        ("example..com/a", False),
        ("/a", False),
        ("a/", False),
        ("a/b/c", False),
        ("-a", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_keys_of_labels(text: str, is_one: bool) -> None:
    assert is_qualified_name(text) is is_one


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("", True), ("A_b.C-9", True), ("n" * 63, True), ("n" * 64, False), ("a-", False), ("a/b", False), ("a\n", False)],
)
def test_values_of_labels(text: str, is_one: bool) -> None:
    assert is_label_value(text) is is_one


def test_the_schemas_of_the_custom_resources_have_the_same_patterns() -> None:
    used = {
        found.strip('"')
        for path in CRDS.glob("*.yaml")
        for found in re.findall(r"pattern: (\"\^.+?\$\"|\^.+\$)", path.read_text())
        if "A-Za-z0-9_/." not in found and found.strip('"') != "^[A-Za-z][A-Za-z0-9]*$"  # parameters
    }
    bounded = QUALIFIED_NAME.replace("(?![^/]{254})", "")
    assert used == {one.replace(r"\Z", "$") for one in (LABEL_VALUE, NAMESPACE, bounded)}
