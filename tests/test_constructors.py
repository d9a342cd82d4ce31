"""What an object needs it gets in its constructor: no attribute of another object is assigned outside its class.

The rule, over the syntax trees of the shipped packages. An assignment to `x.attribute`, where `x` is neither self nor
cls, is an offence if some class of ours has an attribute of that name, but

    - a file may write the fields of a class that it defines itself,
    - a mutable dataclass, or a class with slots, is a record: the files of its own folder may write its fields,
    - and what holds a function is a hook wherever it is: only its own class may set it.

An attribute that no class of ours has belongs to an object of a library (array flags, `ssl` contexts, Arrow tables).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.test_import_directions import MAY_IMPORT, ROOT

NOT_OURS: Final = {
    "app.state.service": "FastAPI offers `state` to whoever makes the app",
    "self._app.state.service.draining": "the server tells the app, of which it knows nothing else, that it ends",
    "request.url": "of the library requests, before it signs the request",
    "squared.data": "the values of a sparse matrix of scipy",
    "self._unanswered.popleft().body": "a request cycle of uvicorn",
}
"""Assignments to objects of libraries whose attribute has the name of one of ours."""

OUTSIDE: Final = {
    "TrackedCluster.now": "LiveTables, which holds the cluster and its lock, lets time pass",
    "ClusterState.version": "LiveTables is told the version of the API server",
}
"""Attributes by class that files elsewhere may assign, with the reason."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """As a class declares it. is_record: others of its folder may write it; is_hook: it holds a function."""

    cls: str
    file: Path
    is_record: bool
    is_hook: bool


@dataclass(slots=True)
class Read:
    """What a file declares and assigns.

    declared : whether each attribute is a hook, by class
    assigned : to objects other than self, with the classes around the assignment, innermost last
    """

    declared: dict[ast.ClassDef, dict[str, bool]] = field(default_factory=dict)
    assigned: list[tuple[ast.Attribute, tuple[ast.ClassDef, ...]]] = field(default_factory=list)

    def look(self, node: ast.AST, around: tuple[ast.ClassDef, ...] = ()) -> None:
        match node:
            case ast.ClassDef():
                around = (*around, node)
                self.declared[node] = {name: is_hook for one in node.body for name, is_hook in fields(one)}
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                self.declared[around[-1]][name] = "Callable" in ast.unparse(node.annotation)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), ctx=ast.Store()) if around:
                self.declared[around[-1]].setdefault(node.attr, False)
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                self.assigned.append((node, around))
        for child in ast.iter_child_nodes(node):
            self.look(child, around)

    def of_others(self) -> Iterator[ast.Attribute]:
        """Yield assignments to attributes that no class around them has."""
        for node, around in self.assigned:
            if not any(node.attr in self.declared[cls] for cls in around):
                yield node


def fields(statement: ast.stmt) -> Iterator[tuple[str, bool]]:
    """Attributes that a statement in the body of a class declares, and whether they hold a function."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name, "Callable" in ast.unparse(statement.annotation)
        case ast.Assign(targets=targets):
            yield from ((target.id, False) for target in targets if isinstance(target, ast.Name))


def is_record(cls: ast.ClassDef) -> bool:
    decorators = [ast.unparse(one) for one in cls.decorator_list]
    has_slots = any(isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__slots__" for one in cls.body)
    return has_slots or any("dataclass" in one and "frozen=True" not in one for one in decorators)


def offences(files: Mapping[Path, Read]) -> Iterator[tuple[str, list[str]]]:
    """Yield the place of each with what is assigned, and the attributes that this may be, by class."""
    owners: dict[str, list[Attribute]] = defaultdict(list)
    for file, read in files.items():
        for cls, declared in read.declared.items():
            for name, is_hook in declared.items():
                owners[name].append(Attribute(cls.name, file, is_record(cls), is_hook))
    for file, read in files.items():
        for node in read.of_others():
            ours = [] if ast.unparse(node) in NOT_OURS else owners.get(node.attr, [])
            near = [one for one in ours if one.file == file or (one.is_record and one.file.parent == file.parent)]
            if ours and all(one.is_hook for one in near):
                yield f"{file}:{node.lineno} assigns {ast.unparse(node)}", [f"{one.cls}.{node.attr}" for one in ours]


def read(sources: Mapping[Path, str]) -> Mapping[Path, Read]:
    files = {path: Read() for path in sources}
    for path, source in sources.items():
        files[path].look(ast.parse(source))
    return files


@pytest.fixture(scope="module")
def shipped() -> Mapping[Path, Read]:
    paths = [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]
    return read({path.relative_to(ROOT): path.read_text() for path in paths})


def test_no_attribute_is_assigned_outside_its_class(shipped: Mapping[Path, Read]) -> None:
    found = [f"{place}: {of}" for place, of in offences(shipped) if OUTSIDE.keys().isdisjoint(of)]
    assert not found, "\n".join(found)


def test_every_exception_is_needed(shipped: Mapping[Path, Read]) -> None:
    found = {name for _, of in offences(shipped) for name in of}
    texts = {ast.unparse(node) for file in shipped.values() for node in file.of_others()}
    assert not OUTSIDE.keys() - found
    assert not NOT_OURS.keys() - texts


LOOP: Final = "class Loop:\n    def __init__(self) -> None:\n        self.judge = None\n        self.n = 0\n"
HOOK: Final = "@dataclass\nclass Hook:\n    call: Callable[[], None]\n"
RECORD: Final = "@dataclass\nclass Record:\n    n: int\n"


def found_in(**sources: str) -> list[str]:
    texts = {Path(name.replace("_", "/") + ".py"): text for name, text in sources.items()}
    return [place for place, _ in offences(read(texts))]


def test_the_check_sees_what_it_should() -> None:
    assert found_in(a_loop=LOOP, b_wiring="def f(loop):\n    loop.judge = 1")
    assert found_in(a_loop=LOOP, b_wiring="def f(loop):\n    loop.n += 1\n    del loop.judge")
    assert found_in(a_hook=HOOK + "def f(hook):\n    hook.call = print")
    assert found_in(a_record=RECORD, b_wiring="def f(one):\n    one.n = 2")
    assert not found_in(a_loop=LOOP + "def f(loop):\n    loop.n += 1")
    assert not found_in(a_record=RECORD, a_other="def f(one):\n    one.n = 2")
    assert not found_in(b_wiring="def f(array):\n    array.flags.writeable = False")
