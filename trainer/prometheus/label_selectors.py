"""Puts labels into every selector of a PromQL query, so that one cluster is read where a server holds several. Pure.

    with_labels("sum by (pod) (rate(a{b='c'}[5m])) / on () d", {"cluster": "eu"})
        sum by (pod) (rate(a{b='c',cluster="eu"}[5m])) / on () d{cluster="eu"}

A query is not parsed, only cut into tokens. What a name means follows from where it stands: where an operand is due it
is a function or aggregation if a parenthesis follows, else a metric; behind an operand it is an operator or modifier.
The language is that of Prometheus 3, https://prometheus.io/docs/prometheus/latest/querying/basics/ and
promql/parser/generated_parser.y, with the operators that VictoriaMetrics adds; variables of Grafana ($node) are
operands. A query with anything else is refused: a selector that we overlook would read all clusters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from base.errors import InputError

_TOKENS: Final = re.compile(
    r"""
      (?P<space>   \s+ | \#[^\n]* )
    | (?P<string>  "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `[^`]*` )
    | (?P<number>  \$\w+ | \$\{[^}]*\} | (?:\d|\.\d) (?: [eE][+-](?=\d) | [\w.] )* )
    | (?P<name>    [^\W\d][\w:]* | :[\w:]+ )
    | (?P<sign>    ==|!=|=~|!~|>=|<=|[-+*/%^<>=@,(){}:\[\]] )
    """,
    re.VERBOSE | re.DOTALL,
)
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OPERATORS: Final = frozenset(["==", "!=", ">=", "<=", "<", ">", "+", "-", "*", "/", "%", "^", "@", ","])
"""Signs before an operand. `@` and a comma are none, but what comes next is the same."""

_WORD_OPERATORS: Final = frozenset(["and", "or", "unless", "atan2", "offset", "default", "if", "ifnot", "limit"])
_AFTER_OPERAND: Final = frozenset(["anchored", "smoothed", "keep_metric_names"])
_GROUPING: Final = frozenset(("by", "without"))
_MATCHING: Final = frozenset(["on", "ignoring", "group_left", "group_right", "fill", "fill_left", "fill_right"])
"""Stand between an operator and its second operand. A list in parentheses may follow."""

_MATCHES: Final = frozenset(["=", "!=", "=~", "!~"])
_NUMBERS: Final = frozenset(("inf", "nan"))


class UnreadableQuery(InputError):
    """A query that `with_labels` cannot read for sure; the message says where."""


def with_labels(promql: str, labels: Mapping[str, str]) -> str:
    """Return the query with a matcher for each label in each of its selectors; without labels as it is.

    A selector that has a matcher for the label keeps it: both have to match. Raises UnreadableQuery.
    """
    return _Query(promql, label_matchers(labels)).narrowed() if labels else promql


def label_matchers(labels: Mapping[str, str]) -> str:
    """Return what selects labels inside of braces: cluster="eu",env="prod"."""
    return ",".join(f"{label_name(label)}={_quoted(value)}" for label, value in labels.items())


def label_name(label: str) -> str:
    """Return the name as it is written in a query."""
    return label if _LABEL_NAME.fullmatch(label) else _quoted(label)  # other names in quotes: Prometheus 3


def _quoted(text: str) -> str:
    """A string of PromQL, which has the escapes of Go."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class _Query:
    """One pass over the tokens of a query; `_at` is the next one, `_out` what was written."""

    def __init__(self, promql: str, matchers: str) -> None:
        self._promql, self._matchers = promql, matchers
        self._tokens = list(_tokens(promql))
        self._at = 0
        self._out: list[str] = []

    def narrowed(self) -> str:
        operand = True  # what comes next is an operand
        while self._peek()[1]:
            self._spaces()
            kind, text = self._peek()
            if kind == "name":
                operand = self._operand_name() if operand else self._operator_name()
            elif text == "{" and operand:
                self._braces()
                operand = False
            elif text == "(" and operand:
                self._take()
            elif text == "[" and not operand:
                self._until("]")
            elif text == ")":
                self._take()
                operand = False
            elif text in _OPERATORS:
                self._take()
                operand = True
            elif kind in ("string", "number") and operand:
                self._take()
                operand = False
            elif text:
                raise self._unreadable()
        self._spaces()
        return "".join(self._out)

    def _operand_name(self) -> bool:
        """A name where an operand is due. Returns whether one is due behind it still."""
        name = self._peek()[1].lower()
        if name == "bool":
            self._take()
            return True
        if name in _MATCHING:
            self._take()
            self._list()
            return True
        following, behind = self._peek(1), self._peek(2)
        if following[1] == "(":
            self._take()  # a function, or an aggregation: its parentheses are an operand
            return True
        if following[1].lower() in _GROUPING and behind[1] == "(":
            self._take()
            self._spaces()
            self._take()
            self._list()
            return True
        self._take()
        if following[1] == "{":
            self._spaces()
            self._braces()
        elif name not in _NUMBERS:
            self._out.append(f"{{{self._matchers}}}")
        return False

    def _operator_name(self) -> bool:
        """A name behind an operand. Returns whether an operand is due behind it."""
        name = self._peek()[1].lower()
        if name in _WORD_OPERATORS:
            self._take()
            return True
        if name in _GROUPING:  # sum(a) by (b)
            self._take()
            self._list()
            return False
        if name in _AFTER_OPERAND:
            self._take()
            return False
        raise self._unreadable()

    def _braces(self) -> None:
        """Matchers in braces, with ours behind them; of VictoriaMetrics' alternatives ({a="b" or c="d"}) each."""
        last = self._take()
        while self._peek()[1] != "}":
            self._spaces()
            kind, text = self._peek()
            if text in ("", "{", "[", "("):
                raise self._unreadable()
            # A label may be called `or`, too.
            is_or = kind == "name" and text.lower() == "or" and self._peek(1)[1] not in _MATCHES
            if is_or:
                self._out.append(f",{self._matchers} ")
            self._take()
            last = "{" if is_or else text
        self._spaces()
        self._out.append(self._matchers if last in ("{", ",") else f",{self._matchers}")
        self._take()

    def _list(self) -> None:
        """Labels in parentheses, if there are some."""
        if self._peek()[1] == "(":
            self._until(")")

    def _until(self, end: str) -> None:
        while self._take() != end:
            if not self._peek()[1]:
                raise self._unreadable()

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        """Kind and text of a token that is no space; ("", "") behind the last one."""
        at = self._at
        while at < len(self._tokens):
            if self._tokens[at][0] != "space":
                if not ahead:
                    return self._tokens[at]
                ahead -= 1
            at += 1
        return "", ""

    def _spaces(self) -> None:
        while self._at < len(self._tokens) and self._tokens[self._at][0] == "space":
            self._out.append(self._tokens[self._at][1])
            self._at += 1

    def _take(self) -> str:
        """Write the next token that is no space, and return it."""
        self._spaces()
        text = self._tokens[self._at][1]
        self._out.append(text)
        self._at += 1
        return text

    def _unreadable(self) -> UnreadableQuery:
        rest = "".join(text for _, text in self._tokens[self._at :]).strip()
        return _unreadable(self._promql, rest)


def _tokens(promql: str) -> list[tuple[str, str]]:
    """Kind and text of each token; together they are the query."""
    found, at = [], 0
    while at < len(promql):
        match = _TOKENS.match(promql, at)
        if match is None:
            raise _unreadable(promql, promql[at:])
        assert match.lastgroup is not None
        found.append((match.lastgroup, match[0]))
        at = match.end()
    return found


def _unreadable(promql: str, rest: str) -> UnreadableQuery:
    where = f"{rest[:30]!r} is not expected there" if rest else "it ends too early"
    return UnreadableQuery(f"{where}, the query is {' '.join(promql.split())}")
