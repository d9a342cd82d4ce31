"""There are not more settings than users can know, and a page that people wrote says of each what it is for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from forecast_scheduler.settings.known_keys import SHARED_BY, known_sections
from forecast_scheduler.settings.page import PAGE

ROOT: Final = Path(__file__).parents[3]

MOST_KEYS: Final = 300


def _pages() -> list[str]:
    """The text of each page, without headings, and of code only the lines of YAML with a comment."""
    paths = [path for path in ROOT.glob("docs/**/*.md") if path != PAGE]
    paths += [path for name in ("README.md", "EMERGENCY.md") if (path := ROOT / name).exists()]
    code = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
    texts = [code.sub(lambda block: _with_comments(*block.groups()), path.read_text()) for path in paths]
    return [re.sub(r"^#.*$", "", text, flags=re.MULTILINE) for text in texts]


def _with_comments(language: str, block: str) -> str:
    """Of a settings document the keys with a comment as code, under `group.key`; of other code nothing."""
    if language != "yaml":
        return ""
    lines, above = [], list[tuple[int, str]]()
    for line in block.splitlines():
        found = re.match(r"( *(?:- )?)([a-z_]+):(.*)", line)
        if found is None:
            continue
        indent, key, rest = len(found[1]), found[2], found[3]
        above = [(column, group) for column, group in above if column < indent]
        if "#" in rest:
            lines.append("`" + ".".join([*(group for _, group in above), key]) + "`")
        above.append((indent, key))
    return "\n".join(lines)


def _names(text: str, key: str) -> bool:
    """Whether the key stands there by itself: not as a part of a longer one."""
    return re.search(rf"(?<![\w.]){re.escape(key)}(?!\w)", text) is not None


def _quotes(text: str, name: str) -> bool:
    """Whether the name stands there as code, if needed with a value: `days` or `days: 7`."""
    return re.search(rf"`{re.escape(name)}(: [^`\n]*)?`", text) is not None


def is_explained(key: str, pages: list[str]) -> bool:
    """Return whether a page has the full key, or names its group and has the last part of it as code.

    Of a group that commands share, the key under that of a command counts; of the group of a command, any key in it.
    """
    plain = key.replace("[]", "")
    group, _, last = plain.rpartition(".")
    if not group:
        return any(_quotes(text, key) for text in pages)
    if key in SHARED_BY or group in SHARED_BY:  # of all commands together
        plain = "COMMAND." + plain.partition(".")[2]
        group = plain.rpartition(".")[0]
    followers = [follower for follower, shared in SHARED_BY.items() if shared == group]
    keys = [key, plain, *(f"{follower}.{last}" for follower in followers)]
    return any(
        any(_names(text, one) for one in keys) or (_names(text, group) and _quotes(text, last)) for text in pages
    )


def unexplained() -> list[str]:
    """Return the keys of docs/use/settings.md that no other page explains."""
    pages = _pages()
    return [one.key for section in known_sections() for one in section.keys if not is_explained(one.key, pages)]


def test_there_are_not_too_many_keys() -> None:
    n_keys = sum(len(section.keys) for section in known_sections())
    assert n_keys == len(re.findall(r"^\| `", PAGE.read_text(), flags=re.MULTILINE))
    assert n_keys <= MOST_KEYS


def test_every_key_is_explained_on_a_page_that_people_wrote() -> None:
    assert unexplained() == [], "explain them in docs/, or make constants of them"


def test_what_counts_as_an_explanation() -> None:
    page = ["Set `scorer.serving.port` to 80, or under `schedule.repair` `every: 5s`. `hot_share: 0.7` is usual."]
    for key in ("serving.port", "scorer.serving", "schedule.repair.every", "hot_share"):
        assert is_explained(key, page), key
    for key in ("serving.host", "replay.every", "schedule.repair.enabled", "port", "history"):
        assert not is_explained(key, page), key


if __name__ == "__main__":
    print(*unexplained(), sep="\n")
