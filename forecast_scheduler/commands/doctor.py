"""`doctor`: what in a history limits its forecast, how much of the load that touches, and what to do?"""

from __future__ import annotations

from forecast_scheduler.commands.options.common import ConfigOption, HistoryOption, JsonOption, VerboseOption
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures


def doctor(
    history: HistoryOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Report what limits the forecast in a history: gaps, wrong values, hidden demand, services that never repeat.

    Each finding says how many services or nodes it touches, their share of the load, and what to do about it.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    directory = shell.history(history)

    from forecast_scheduler.commands.history_directory import open_history
    from forecast_scheduler.reports.doctor_tables import finding_lines, findings_table, summary_lines
    from trainer.doctor.examination import examine

    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        figures = examine(known, files.report, files.cut).to_json()
    for line in summary_lines(figures):
        shell.say(line)
    if figures["findings"]:
        shell.out.print(findings_table(figures))
    for line in finding_lines(figures):
        shell.say(line)
    write_figures(json, figures)
