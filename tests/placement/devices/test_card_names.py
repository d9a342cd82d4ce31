from __future__ import annotations

import pytest

from placement.devices.card_names import listed, of_any_type


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["A100"], True),
        (["80GB"], True),
        (["A10"], False),
        (["V100", "NVIDIA"], True),
        (["--"], False),
        ([], False),
    ],
)
def test_a_type_is_whole_words_of_a_label(types: list[str], expected: bool) -> None:
    assert of_any_type(types)("NVIDIA-A100-SXM4-80GB") is expected


def test_many_types_are_not_all_named() -> None:
    assert listed(["A", "B"]) == "A or B"
    assert listed([str(i) for i in range(9)]) == "0 or 1 or 2 or 3 or 4 or others"
    assert len(listed(["x" * 9000])) == 63
