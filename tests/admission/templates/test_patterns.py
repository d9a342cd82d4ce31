from __future__ import annotations

import pytest

from admission.templates.parameters import matches, pattern_problem


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
