"""Each form in which people have their objects gives the same objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from base.errors import InputError
from kube.decoding.object_files import objects_of, objects_of_path


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def job(name: str) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}


def listed(*objects: dict[str, Any]) -> dict[str, Any]:
    """As kubectl cluster-info dump lists them: items do not say what they are."""
    first = objects[0]
    bare = [{key: value for key, value in one.items() if key == "metadata"} for one in objects]
    return {"kind": f"{first['kind']}List", "apiVersion": first["apiVersion"], "metadata": {}, "items": bare}


NODES, JOBS = listed(node("n1"), node("n2")), listed(job("j1"))
EMPTY = {"kind": "EventList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": None}
WHOSE = "for container api of pod shop/api-1"
LOG = f'==== START logs {WHOSE} ====\n{{"kind": "Node"}}\nlistening==== END logs {WHOSE} ====\n'
STARTS, ENDS = f"==== START logs {WHOSE} ====\n", f"==== END logs {WHOSE} ====\n"
DUMP = f"{json.dumps(NODES, indent=4)}\n{json.dumps(EMPTY, indent=4)}\n{LOG}{json.dumps(JOBS, indent=4)}\n"
EXPECTED = [("v1", "Node", "n1"), ("v1", "Node", "n2"), ("batch/v1", "Job", "j1")]


def read(content: str, *, is_json: bool = True) -> list[tuple[str, str, str]]:
    found = objects_of(content.encode(), is_json=is_json)
    return [(one.api_version, one.kind, json.loads(bytes(one.json))["metadata"]["name"]) for one in found]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [node("n1"), node("n2"), job("j1")]}),
        json.dumps({"items": [node("n1"), node("n2"), job("j1")]}),
        json.dumps({"kind": "List", "items": [NODES, JOBS]}),
        json.dumps([NODES, JOBS]),
        json.dumps([[node("n1"), node("n2")], [], job("j1")]),
        json.dumps(NODES) + json.dumps(JOBS, indent=1),
        f"{json.dumps(NODES)}\r\n\ufeff{json.dumps(JOBS)}",
        "\n".join(json.dumps(one) for one in (node("n1"), node("n2"), job("j1"))),
        DUMP,
        DUMP.replace("\n", "\r\n"),
        LOG + DUMP.replace(LOG, LOG.replace("api-1", "api-2")),
        DUMP.replace(f"END logs {WHOSE}", "END logs"),
        yaml.safe_dump_all([NODES, EMPTY, None, JOBS]),
        f"---\n{yaml.safe_dump(NODES)}{LOG}---\n{yaml.safe_dump(JOBS)}",
        yaml.safe_dump(NODES) + yaml.safe_dump(JOBS),  # >> adds no line --- between them
        f"---\n{json.dumps(NODES)}\n---\n{json.dumps(JOBS)}",
    ],
)
def test_each_form_is_read(content: str) -> None:
    assert read(content) == EXPECTED
    assert read(content, is_json=False) == EXPECTED


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "shop" / "api-1").mkdir(parents=True)
    (tmp_path / "nodes.json").write_text(json.dumps({key: NODES[key] for key in ("metadata", "items")}))
    (tmp_path / "shop" / "jobs.json").write_text(json.dumps({"metadata": {}, "items": JOBS["items"]}))
    (tmp_path / "shop" / "events.json").write_text("")
    (tmp_path / "shop" / "api-1" / "logs.txt").write_text('{"kind": "Node"}')
    found = objects_of_path(tmp_path)
    assert [(one.api_version, one.kind) for one in found] == [("v1", "Node"), ("v1", "Node"), ("batch/v1", "Job")]
    (tmp_path / "shop" / "jobs.json").write_text("{")
    with pytest.raises(InputError, match=r"^shop/jobs\.json: not JSON of objects"):
        objects_of_path(tmp_path)


def test_a_resource_whose_kind_ends_in_list_is_no_list() -> None:
    assert read('{"apiVersion": "x/v1", "kind": "AllowList", "metadata": {"name": "a"}, "items": [1]}') == [
        ("x/v1", "AllowList", "a")
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # A container that writes these marks makes no objects of what it says.
        (DUMP.replace("listening", f"{ENDS}{{}}\n"), r"invalid character, line \d+: '==== END"),
        (
            DUMP.replace("listening", f'{ENDS}{{"kind": "Node"}}\n{STARTS}'),
            "the log 'for container api of pod shop/api-1' is there twice",
        ),
        (DUMP.replace("END logs", "end logs"), "has no end: was the dump cut off"),
        (DUMP[: len(DUMP) // 4], "not JSON of objects .*truncated"),
        (f"Warning: old\n{DUMP}", "neither JSON nor YAML of objects: it begins with 'Warning: old'"),
        (f"{json.dumps(NODES)}\nWarning: old", "line 2: 'Warning: old'"),
        ("[" * 10 + "]" * 10, "lists are more than 8 deep"),
        ("[" * 500_000, "not JSON of objects"),
        ("a: &a0 [x]\n" + "".join(f"k{i}: &a{i + 1} [{f'*a{i},' * 8}]\n" for i in range(20)), r"more than \d+ values"),
        ('kind: Node\nmetadata: {name: a, "name": b}', "key 'name' is there twice, line 2"),
        ('{"kind": "Node", "metadata": {"name": "a"}, "spec": {"a": 1, "a": 1}}', "^Node a has the key 'a' twice$"),
        ('{"items": [{"kind": "Node"}], "items": []}', "^an object has the key 'items' twice$"),
        ('{"kind": 3}', "not objects in JSON or YAML"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_place(content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        objects_of(content.encode(), is_json=not content.startswith(("a:", "kind:")))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300
