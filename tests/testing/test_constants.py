"""Other constants of options classes: in this process for one instance, for a command by the paths of a document."""

from __future__ import annotations

from typing import ClassVar

import pytest

from base.setting_group import SettingGroup
from testing.constants import set_constants, split_constants, with_constants


class _Paced(SettingGroup):
    kept: int = 3

    pause: ClassVar[float] = 60.0


def test_one_instance_has_other_constants_and_the_same_settings() -> None:
    other = with_constants(_Paced(kept=5), pause=0.5)
    assert (other.kept, other.pause, other.replace(kept=6).pause) == (5, 0.5, 0.5)
    assert _Paced().pause == 60.0
    assert with_constants(_Paced(), kept=7).kept == 7
    with pytest.raises(KeyError, match="no constant 'lasting'"):
        with_constants(_Paced(), lasting=1)


def test_constants_are_told_from_the_keys_of_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    left = {"advise": {"domain": ""}, "schedule": {"queues": [{"name": "a"}]}, "unknown": {"a": 1}}
    document, constants = split_constants(left | {"advise": {"domain": "", "gate_timeout": "1s"}})
    assert document == left
    assert constants == {"advisor.advice_settings:AdviseOptions": {"gate_timeout": 1.0}}
    monkeypatch.setattr(_Paced, "pause", 60.0)
    set_constants({f"{__name__}:_Paced": {"pause": 2.0}})
    assert _Paced().pause == 2.0
