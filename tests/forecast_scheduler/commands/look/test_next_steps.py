from __future__ import annotations

from pathlib import Path

from forecast_scheduler.commands.look.next_steps import next_steps


def test_all_commands_go_to_the_cluster_that_was_looked_at() -> None:
    commands = [one.command for one in next_steps(Path("a file"), "prod-b", "http://store", Path("s.yaml"))]
    assert commands == [
        "forecast-scheduler train --kubeconfig 'a file' --context prod-b --prometheus http://store --config s.yaml",
        "kubectl --kubeconfig 'a file' --context prod-b apply --server-side -f dist/install.yaml",
    ]
    assert next_steps(None, None, None, None)[1].command == "kubectl apply --server-side -f dist/install.yaml"
