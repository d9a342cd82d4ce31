"""Documents as people write them: what is read, and what a mistake says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from base.errors import InputError
from placement.policies.document import PolicyDocument, read_document
from placement.policies.mistakes import DocumentMistake, first_mistake
from tests.placement.policies.made_up import DOCUMENT

GREEK_TENS = 9  # lists of ten, each of ten of the list before
BOMB = "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]\n" for i in range(GREEK_TENS))
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 10)}]}}\n" for i in range(GREEK_TENS)
)


def test_a_document_is_read_as_it_is_written() -> None:
    document = read_document(DOCUMENT)
    assert list(document.policies) == ["balanced", "latency-critical", "batch"]
    critical = document.policies["latency-critical"]
    assert critical.deadline == pytest.approx(0.1)
    assert critical.highest_peaks == {"cpu": 0.8} and critical.cards is None
    assert document.rules is not None and [rule.policy for rule in document.rules] == [
        "latency-critical",
        "batch",
        "batch",
    ]
    batch = document.policies["batch"]
    assert batch.scores is not None and batch.scores.shape == {0: 10, 100: 0} and batch.scores.usage_weights is None


def test_aliases_and_merge_keys_are_written_out() -> None:
    document = read_document(
        "policies:\n  a: &a {scores: {weights: &w {predicted_peak: 1}}}\n  b: {<<: *a, deadline: 1s}\n"
        "  c: {scores: {weights: *w}}\n"
    )
    assert document.policies["b"].scores == document.policies["a"].scores == document.policies["c"].scores
    assert document.policies["b"].deadline == 1.0


IN_A = "policies: {{a: {{{}}}}}"
IN_RULE = "rules: [{{policy: a, {}}}]"


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", "", "is empty: write `policies: {}`"),
        ("[a]", "", "is a list: write `policies:`"),
        ("polices: {}", "polices", "did you mean policies?"),
        ("x: {}", "x", "known are: default, policies, rules"),
        ("policies: [a]", "policies", "must be a map, found a list"),
        ("policies: {a: 3}", "policies.a", "must be a map, found 3"),
        ("policies: {yes: {}}", "policies.True", "must be text, found True: put it in quotes"),
        ("policies: {'a b': {}}", "policies.a b", "this is no name"),
        (f"default: {'x' * 64}", "default", "this is no name"),
        (IN_A.format("scors: {}"), "policies.a.scors", "did you mean scores?"),
        (IN_A.format("filters: MachineGroup"), "policies.a.filters", "must be a list, found 'MachineGroup'"),
        (IN_A.format("filters: [3]"), "policies.a.filters.1", "must be text, found 3"),
        (IN_A.format("deadline: 5y"), "policies.a.deadline", "write a duration with its unit, such as 100ms"),
        (IN_A.format("deadline: \u0663s"), "policies.a.deadline", "write a duration with its unit"),
        (IN_A.format("deadline: 11s"), "policies.a.deadline", "less than or equal to 10"),
        (IN_A.format("deadline: 0ms"), "policies.a.deadline", "greater than 0"),
        (IN_A.format("highest_peaks: {cpu: 0}"), "policies.a.highest_peaks.cpu", "greater than 0"),
        (IN_A.format("scores: {weights: {}}"), "policies.a.scores.weights", "is empty: leave it out"),
        (IN_A.format("scores: {weights: {x: '1'}}"), "policies.a.scores.weights.x", "must be a number, found '1'"),
        (IN_A.format("scores: {weights: {x: .nan}}"), "policies.a.scores.weights.x", "must be a finite number"),
        (IN_A.format("scores: {weights: {x: -1}}"), "policies.a.scores.weights.x", "greater than or equal to 0"),
        (IN_A.format("scores: {water_levels: {}}"), "policies.a.scores.water_levels", "no such key"),
        (IN_A.format("scores: {shape: [0, 1]}"), "policies.a.scores.shape", "must be a map"),
        (IN_A.format("cards: {protection: of}"), "policies.a.cards.protection", "'soft' or 'hard', found 'of'"),
        (IN_A.format("rare_devices: {mode: hard}"), "policies.a.rare_devices", "this key is gone: write cards:"),
        ("rules: {a: b}", "rules", "must be a list"),
        ("rules: [{namespaces: [a]}]", "rules.1.policy", "this is missing"),
        ("rules: [{policy: a, namespaces: [b]}, {policy: a}]", "rules.2", "would choose for every pod"),
        (IN_RULE.format("namespaces: []"), "rules.1.namespaces", "is empty"),
        (IN_RULE.format("namespaces: shop"), "rules.1.namespaces", "must be a list, found 'shop'"),
        (IN_RULE.format("namespaces: [Shop]"), "rules.1.namespaces.1", "no name of a namespace"),
        (IN_RULE.format("selector: {app: cart}"), "rules.1.selector.app", "known are: matchLabels, matchExpressions"),
        (IN_RULE.format("selector: {match_labels: {}}"), "rules.1.selector.match_labels", "did you mean matchLabels?"),
        (IN_RULE.format("selector: {matchLabels: {app: yes}}"), "rules.1.selector.matchLabels.app", "put it in quotes"),
        (IN_RULE.format("selector: {matchLabels: {a b: c}}"), "rules.1.selector.matchLabels.a b", "no label key"),
        (IN_RULE.format("selector: {matchLabels: {a: 'b c'}}"), "rules.1.selector.matchLabels.a", "no label value"),
        (
            IN_RULE.format("selector: {matchExpressions: [{key: a, operator: in, values: [b]}]}"),
            "rules.1.selector.matchExpressions.1.operator",
            "'In', 'NotIn', 'Exists' or 'DoesNotExist', found 'in'",
        ),
        (
            IN_RULE.format("selector: {matchExpressions: [{key: a, operator: In}]}"),
            "rules.1.selector.matchExpressions.1",
            "operator In needs values",
        ),
        (
            IN_RULE.format("selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}"),
            "rules.1.selector.matchExpressions.1",
            "operator Exists has no values",
        ),
        ("policies: {a: {}, b: {}, a: {}}", "", "key 'a' is there twice, line 1"),
        ("policies:\n  a: {deadline: 1s,\n      deadline: 2s}", "", "key 'deadline' is there twice, line 3"),
        ("a: [", "", "not valid YAML"),
        ("a: 1\n---\nb: 1", "", "another document"),
        ("a: !!python/object/apply:os.system [x]", "", "not valid YAML"),
        ("a: &a [*a]", "", "contains it"),
        (BOMB, "", "more than 200000 values"),
        (MERGE_BOMB, "", "more than 200000 values"),
        ("[" * 500_000, "", "nested more than 32 deep"),
        ("a: " + "9" * 5_000, "", "a number has 5000 characters: put it in quotes, line 1"),
        ("a: " + ":".join(["1"] * 300_000) + ".5", "", "characters"),
        ("a: !!int '" + "9" * 41 + "'", "", "a number has 41 characters"),
        ("a: \x00", "", "not valid YAML"),
        ("a: " + "x" * (1 << 20), "", "1048576 are allowed"),
        ("policies: {" + ", ".join(f"p{i}: {{}}" for i in range(201)) + "}", "policies", "at most 200 items"),
        ("rules: [" + ", ".join(["{policy: a, namespaces: [b]}"] * 1001) + "]", "rules", "at most 1000 items"),
    ],
)  # fmt: skip
def test_a_mistake_says_where_it_is_and_what_is_allowed(text: str, place: str, says: str) -> None:
    with pytest.raises(DocumentMistake) as caught:
        read_document(text)
    assert caught.value.place == place
    assert says in caught.value.what
    message = str(caught.value)
    assert message.startswith(f"{place}: " if place else "") and "\n" not in message and len(message) < 1_500


def read_or_refused(text: str) -> object:
    """The document, or a sentence that can be encoded."""
    try:
        return read_document(text)
    except InputError as error:
        return str(error).encode()


def test_a_number_that_cannot_be_shown_is_a_mistake_like_any_other() -> None:
    values = {"rules": 10**5_000}
    with pytest.raises(ValidationError) as caught:
        PolicyDocument.model_validate(values)
    mistake = first_mistake(caught.value, values, PolicyDocument)
    assert str(mistake) == "rules: this must be a list, found a value of type int"


@given(st.text(max_size=60) | st.text("[]{}:,-&*<\n a1'\"|>!?#%@", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(text)
