from __future__ import annotations

import itertools

import pytest

from admission.templates.patterns import matches, pattern_problem


@pytest.mark.parametrize(
    ("pattern", "text", "does"),
    [
        ("", "anything", True),
        ("[a-z]+", "abc", True),
        ("[a-z]+", "abc1", False),
        ("a|bc", "abc", False),
        ("a|bc", "bc", True),
        ("(dev|prod)-[0-9]{1,2}", "prod-17", True),
        ("(dev|prod)-[0-9]{1,2}", "prod-170", False),
        (r"example\.com/[a-z]*", "example.com/", True),
        (r"example\.com/[a-z]*", "example-com/", False),
        ("[a-z]([-a-z0-9]*[a-z0-9])?", "a-b", True),
        ("[^/]+", "a/b", False),
        ("a", "a\n", False),
    ],
)
def test_a_pattern_is_about_the_whole_text(pattern: str, text: str, does: bool) -> None:
    assert pattern_problem(pattern) == ""
    assert matches(pattern, text) is does


@pytest.mark.parametrize(
    "pattern",
    [
        "(a*)*b",  # exponential in Python
        "(a|a)+b",
        "a*a*a*a*b",
        "a*a*a*b",  # milliseconds by tens
        "a{1,}a{1,}a{1,}b",
        "a?a?a?a?b",
        "a|b|c|d|e",
        "(a|a)(a|a)(a|a)(a|a)b",
        "(a|a)(a|a)a*a*b",
        "a*a*(a|b)?b",
        "(a)(b)(c)(d)(e)",
        "a**",
        "a*+",
        "a+?",
        "a{2}{3}",
        "(?i)a",
        "(?=a)",
        r"\d+",
        "^a$",
        "(a",
        "a)",
        "[z-a]",
        "[]",
        "*a",
        "a|*",
        "{2}",
        "a{2,1}",
        "a{,2}",
        "[a--b]",
        "a b",
        "ä",
    ],
)
def test_what_one_of_both_reads_otherwise_or_slowly_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern)


_PIECES = ("a*", "a+", "a{0,99}", "a?", "(a|a)", "(a|)", "[^b]", "a*a*")


def test_what_is_allowed_can_be_tried_in_few_ways() -> None:
    """By brute force over patterns of such pieces: in how many ways can the beginnings of a text be taken apart?"""
    longest = max(
        (ways, pattern)
        for pieces in itertools.product(_PIECES, repeat=4)
        for pattern in ["".join(pieces) + "b"]
        if not pattern_problem(pattern)
        for ways in [_ways(pieces)]
    )
    assert longest[0] <= 2 * 254 * 255 / 2, longest


def _ways(pieces: tuple[str, ...]) -> int:
    """Paths that backtracking can take through 253 times the letter a."""
    ends = {0: 1}
    for piece in itertools.chain.from_iterable(["a*", "a*"] if one == "a*a*" else [one] for one in pieces):
        after: dict[int, int] = {}
        for start, ways in ends.items():
            for length, times in _LENGTHS[piece]:
                if start + length <= 253:
                    after[start + length] = after.get(start + length, 0) + ways * times
        ends = after
    return sum(ends.values())


_LENGTHS = {
    "a*": [(n, 1) for n in range(254)],
    "a+": [(n, 1) for n in range(1, 254)],
    "a{0,99}": [(n, 1) for n in range(100)],
    "a?": [(0, 1), (1, 1)],
    "(a|a)": [(1, 2)],
    "(a|)": [(0, 1), (1, 1)],
    "[^b]": [(1, 1)],
}
