"""Kustomizations and Secrets as pages show them, so that tests build what readers build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from testing.servers.kustomize import built_from
from tests.docs.pages import ROOT, blocks, commands, text_of

Fields = dict[str, Any]


def block_about(page: str, about: str) -> Fields:
    """What the one YAML block of a page holds that says `about`."""
    [block] = [one for one in blocks(text_of(ROOT / "docs" / page)) if one.language == "yaml" and about in one.text]
    found: Fields = yaml.safe_load(block.text)
    return found


def file_shown(page: str, path: str) -> Fields:
    """What `cat path` shows on a page."""
    text = text_of(ROOT / "docs" / page)
    [shown] = re.findall(rf"^\$ cat {re.escape(path)}\n(.*?)(?=^\$ |^```$)", text, re.MULTILINE | re.DOTALL)
    found: Fields = yaml.safe_load(shown)
    return found


def built_as_shown(place: Path, shown: Fields) -> list[dict[str, Any]]:
    """The objects of a kustomization in a directory beside deploy/; its own files lie in `place`."""
    fields = {key: value for key, value in shown.items() if key not in ("apiVersion", "kind")}
    for key in ("resources", "components"):
        if key in fields:
            fields[key] = [_in_deploy(one, place) for one in fields[key]]
    return built_from(place, **fields)


def _in_deploy(name: str, place: Path) -> str:
    return name.removeprefix("../deploy/") if name.startswith("../deploy/") else str(place / name)


def secrets_made_by_hand(page: str) -> dict[str, set[str]]:
    """Keys of the Secrets of our namespace that a page's commands make of files, by name."""
    lines = [line for block in blocks(text_of(ROOT / "docs" / page)) for line in commands(block)]
    made = [line.split() for line in lines if "-n forecast-scheduler create secret generic" in line]
    return {
        words[words.index("generic") + 1]: {
            word.removeprefix("--from-file=").partition("=")[0] for word in words if word.startswith("--from-file=")
        }
        for words in made
    }
