"""The job profile: all of kube-scheduler's filters and scores and the predicted peak, as for online workloads. In
addition: virtual nodes up to their quotas, headroom kept for storms, and nodes avoided whose peak falls into the run.

Preferences narrow the nodes in this order: nodes that have not failed the Job before, where the pod belongs (serverless
or cluster), nodes that stay off their peak during its run.
"""

from __future__ import annotations

from typing import Final

JOB: Final = "job"
