"""The tide over HTTP: the plan, and why."""
