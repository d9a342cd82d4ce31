"""The plan of the job profile over HTTP: which jobs wait until when and why, and what is expected to come."""
