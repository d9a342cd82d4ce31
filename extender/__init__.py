"""Where a pod may go, and where it should: filters, standard scores, and kube-scheduler's HTTP extender on top."""
