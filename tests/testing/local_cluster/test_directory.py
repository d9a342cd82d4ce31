"""Nothing is deleted that no local cluster made."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.local_cluster.directory import own_directory


def test_what_an_earlier_run_left_is_removed(tmp_path: Path) -> None:
    with own_directory(tmp_path / "cluster"):
        (tmp_path / "cluster" / "models").mkdir()
        (tmp_path / "cluster" / "models" / "latest.json").write_text("{}")
        (tmp_path / "cluster" / "env.sh").write_text("")
    with own_directory(tmp_path / "cluster"):
        assert [entry.name for entry in (tmp_path / "cluster").iterdir()] == [".made-by-make-cluster"]


def test_a_directory_of_somebody_else_is_refused_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError, match="holds files that are not of an earlier run"), own_directory(tmp_path):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_two_clusters_do_not_share_one(tmp_path: Path) -> None:
    with own_directory(tmp_path):
        (tmp_path / "kubeconfig").write_text("of the first")
        with pytest.raises(BlockingIOError, match="another cluster runs in"), own_directory(tmp_path):
            pass
        assert (tmp_path / "kubeconfig").exists()
