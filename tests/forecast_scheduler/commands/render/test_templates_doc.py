"""docs/use/templates.md says what is so: its templates can be used, and `render` says of them what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forecast_scheduler.cli import run

PAGE = (Path(__file__).parents[4] / "docs" / "use" / "templates.md").read_text()
CART = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: cart, namespace: shop}}
spec:
  template:
    metadata: {{labels: {{app: cart}}}}
    spec:
      containers: [{{name: main, image: "cart:1"}}]
      {more}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_templates_can_be_used(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "templates.yaml").write_text("---\n".join(blocks("yaml")))
    (tmp_path / "cart.yaml").write_text(CART.format(more=""))
    assert run(["render", str(tmp_path / "cart.yaml"), "--templates", str(tmp_path)]) == 2
    assert "cart.yaml" in capfd.readouterr().err, "a Deployment is no template"
    arguments = ["render", str(tmp_path / "cart.yaml"), "--templates", str(tmp_path / "templates.yaml")]
    assert run(arguments) == 0
    assert "1 of 2 bindings" in capfd.readouterr().out


@pytest.mark.parametrize(("shown", "more"), [("cart.yaml", ""), ("slow.yaml", "nodeSelector: {pool: slow}")])
def test_its_examples_were_run(
    shown: str, more: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "templates.yaml").write_text(blocks("yaml")[0])
    (tmp_path / shown).write_text(CART.format(more=more))
    (block,) = [one for one in blocks("console") if f"render {shown} " in one]
    expected = block.splitlines()[1:]
    assert run(["render", shown, "--templates", "templates.yaml"]) == 0
    said = capfd.readouterr().out.splitlines()
    if expected[-1] == "...":
        said, expected = said[: len(expected) - 1], expected[:-1]
    assert said == expected
