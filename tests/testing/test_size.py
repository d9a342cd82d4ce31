"""What `make size` counts, on a small tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testing.size import sizes

_FILES = {
    "base/one.py": "class A: ...\nclass _B: ...\n\n\ndef f(): ...\n",
    "tests/test_one.py": "def test(): ...\n",
    "benchmarks/b.py": "x = 1\n",
    "docs/use/settings.md": "# Settings\n\n| key | default |\n|---|---|\n| `a.b` | 1 |\n| `a.c` | 2 |\n",
    "README.md": "two words\n",
}


def test_lines_files_keys_words_and_public_names(tmp_path: Path) -> None:
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "base" / "untracked.py").write_text("def g(): ...\n")
    assert list(sizes(tmp_path).values()) == [5, 1, 1, 5, 1, 2, 20, 2, 2]
