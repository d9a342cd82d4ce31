"""The job profile: pods that run for a while and end, by the thousand: some are due, some may wait for the valley."""
