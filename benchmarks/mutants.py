"""Small faults in a source file, one at a time, as a programmer makes them: the material of benchmarks.protection.

Offutt et al. 1996, "An Experimental Determination of Sufficient Mutant Operators": these kinds find nearly all that
larger sets find.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_ARITHMETIC: Final[dict[type[ast.operator], str]] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. line: where it is, from 1. before, after: the code there. text: the whole file with it."""

    line: int
    before: str
    after: str
    text: str


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield every fault of a file, in the order of its syntax tree."""
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))

    def place(node: ast.expr) -> slice:
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = offsets[node.lineno - 1] + node.col_offset
        return slice(begin, offsets[node.end_lineno - 1] + node.end_col_offset)

    raw = source.encode()
    tree = ast.parse(source)
    silent = _not_code(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in silent or (after := _changed(node)) is None:
            continue
        at = place(node)
        text = raw[: at.start] + f"({after})".encode() + raw[at.stop :]
        yield Mutant(node.lineno, raw[at].decode(), after, text.decode())


def _changed(node: ast.expr) -> str | None:
    """Return the code of an expression with one fault in it; None = no kind of fault fits."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return f"({ast.unparse(left)}) {_COMPARISONS[type(operator)]} ({ast.unparse(right)})"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            return f"({ast.unparse(left)}) {_ARITHMETIC[type(operator)]} ({ast.unparse(right)})"
        case ast.BoolOp(op=operator, values=values):
            word = " or " if isinstance(operator, ast.And) else " and "
            return word.join(f"({ast.unparse(value)})" for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            return str(not value)
        case ast.Constant(value=int() | float() as value):
            return repr(value + 1)
    return None


def _not_code(tree: ast.Module) -> set[int]:
    """Return the ids of expressions whose change does nothing: annotations, types, parts of f-strings."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                parts = [
                    node.returns,
                    *(argument.annotation for argument in ast.walk(node.args) if isinstance(argument, ast.arg)),
                ]
            case ast.AnnAssign():
                parts = [node.annotation]
            case ast.FormattedValue() | ast.JoinedStr() | ast.Assert():
                parts = [node]
            case ast.Call(func=ast.Name(id="cast" | "TypeVar" | "NewType")):
                parts = [node]
        found |= {id(inner) for part in parts if part is not None for inner in ast.walk(part)}
    return found
