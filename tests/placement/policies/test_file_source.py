"""Policies from a file, as editors and kubelets change it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from placement.policies.compiling import PolicyDefaults
from placement.policies.file_source import PolicyFile
from placement.policies.provider import OutcomeKind, PolicyProvider
from tests.placement.policies.made_up import pod

A, B = "default: a\npolicies: {a: {}}", "default: b\npolicies: {b: {}}"


@pytest.fixture
def provider() -> PolicyProvider:
    return PolicyProvider(PolicyDefaults())


def in_effect(provider: PolicyProvider) -> str:
    return provider.choose(pod()).policy.name


def test_a_file_is_read_at_once_and_a_change_when_it_reads_the_same_twice(
    tmp_path: Path, provider: PolicyProvider
) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(A)
    file = PolicyFile(path, provider)
    assert file.look() is not None and in_effect(provider) == "a"
    assert file.look() is None
    path.write_text(B[:10])  # an editor is half-way
    assert file.look() is None and in_effect(provider) == "a"
    path.write_text(B)
    assert file.look() is None and in_effect(provider) == "a"
    outcome = file.look()
    assert outcome is not None and outcome.kind is OutcomeKind.ACCEPTED and in_effect(provider) == "b"
    assert file.look() is None


def test_a_mounted_config_map_is_followed_through_its_links(tmp_path: Path, provider: PolicyProvider) -> None:
    """As the kubelet writes it: ..data points to a directory that is replaced."""
    for name, text in (("one", A), ("two", B)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policies.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "policies.yaml").symlink_to("..data/policies.yaml")
    file = PolicyFile(tmp_path / "policies.yaml", provider)
    file.look()
    assert in_effect(provider) == "a"
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(tmp_path / "..data")
    file.look()
    file.look()
    assert in_effect(provider) == "b"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_file_of_a_windows_editor_is_read(tmp_path: Path, provider: PolicyProvider, encoding: str) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(A, encoding=encoding, newline="\r\n")
    PolicyFile(path, provider).look()
    assert in_effect(provider) == "a"


def test_what_cannot_be_read_is_refused_and_the_last_good_one_stays(tmp_path: Path, provider: PolicyProvider) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(A)
    file = PolicyFile(path, provider)
    file.look()

    def refused() -> str:
        file.look()
        file.look()
        refusal = provider.status.refusal
        assert refusal is not None and in_effect(provider) == "a"
        return refusal.message

    path.unlink()
    assert refused() == "there is no policy document"
    path.mkdir()
    assert "Is a directory" in refused()
    path.rmdir()
    path.write_bytes(b"a: \xff")
    assert "is not UTF-8" in refused()
    path.write_bytes(b"\xff\xfea")
    assert "begins as UTF-16" in refused()
    path.write_text("")
    assert "is empty" in refused()
    path.write_text("x" * ((1 << 20) + 1))
    assert "1048576 are allowed" in refused()
    path.unlink()
    os.mkfifo(path)
    assert "is empty" in refused()  # and nobody waits for a writer
    path.unlink()
    path.symlink_to(path)
    assert "cannot be read" in refused()
    path.unlink()
    path.write_text(A)
    file.look()
    file.look()
    assert provider.status.refusal is None
