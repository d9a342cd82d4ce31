"""What tests.rewritten keeps is what pytest loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.rewritten import keep


def test_pytest_finds_the_rewritten_code_of_a_file_and_of_its_changes(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    for answer in ("41", "43"):
        file.write_text(f"def test_it() -> None:\n    answer = {answer}\n    assert answer == 42\n")
        keep(file)
        code = rewrite._read_pyc(file, tmp_path / "__pycache__" / f"test_it{rewrite.PYC_TAIL}")
        assert code is not None
        found: dict[str, object] = {}
        exec(code, found)
        with pytest.raises(AssertionError, match=f"assert {answer} == 42"):
            found["test_it"]()  # type: ignore[operator]
