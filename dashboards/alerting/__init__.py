"""Prometheus rules made from code: actual peaks that compare with predicted ones, and alerts with their runbooks.

peaks.py, services.py         what is recorded of nodes and of services
alert.py                      what an alert is
causes.py                     what explains an alert, so that one cause raises one
forecast_alerts.py            of predicted peaks, the model and what is measured
advisor_alerts.py             of held pods and of advice
loop_alerts.py                of who schedules: queue, gangs, bindings, the extender, policies, the webhook
rebalancing_alerts.py         of the rebalancer
autoscaling_alerts.py         of the autoscaler
gpu_and_job_alerts.py         of GPUs and jobs
operating_alerts.py           of the nightly run and of targets
rule_files.py                 all of it as the files beside this folder
runbooks.py                   all alerts as the page docs/operate/alerts.md
"""

from dashboards.alerting.rule_files import RUNBOOKS, files

__all__ = ["RUNBOOKS", "files"]
