"""Groups of settings: what a mistake says, in a document and where code makes a group."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, ValidationError

from base.errors import InputError
from base.setting_group import Duration, SettingGroup


class Backoff(SettingGroup):
    initial: Duration = Field(default=1, ge=0)
    """Wait after the first failure."""


class Retries(SettingGroup):
    name: str
    backoff: Backoff = Backoff()
    hosts: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"name": "a", "backoff": {"initial": -1}},
            "Retries: backoff.initial is -1: input should be greater",
        ),
        ({"name": "a", "backoff": {"initial": "soon"}}, "backoff.initial is 'soon': write a duration such as 200ms"),
        (
            {"name": "a", "backoff": {"initial": float("inf")}},
            "backoff.initial is inf: input should be a finite",
        ),
        ({"name": "a", "hosts": 3}, "hosts is 3: input should be a valid list"),
        ({"name": "a", "host": 3}, "Retries has no setting 'host': it has name, backoff, hosts"),
        ({}, "Retries: name is missing: give it"),
    ],
)
def test_a_group_that_code_makes_raises_our_error(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Retries(**given)  # type: ignore[arg-type]
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_inside_a_document_a_mistake_keeps_its_whole_path() -> None:
    class Document(BaseModel):
        retries: Retries

    with pytest.raises(ValidationError) as caught:
        Document.model_validate({"retries": {"name": "a", "backoff": {"initial": -1}}})
    assert caught.value.errors()[0]["loc"] == ("retries", "backoff", "initial")


def test_a_changed_copy_is_checked_and_leaves_the_first_as_it_is() -> None:
    first = Retries(name="a", backoff=Backoff(initial=3))
    assert first.replace(hosts=("b",)) == Retries(name="a", backoff=Backoff(initial=3), hosts=("b",))
    assert first.hosts == ()
    with pytest.raises(InputError, match="initial is -1"):
        first.backoff.replace(initial=-1)


def test_the_documentation_of_a_field_is_the_text_below_it() -> None:
    assert Backoff.texts()["initial"] == "Wait after the first failure."
    assert Backoff.model_json_schema()["properties"]["initial"]["description"] == "Wait after the first failure."
