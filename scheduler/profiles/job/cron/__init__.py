"""Schedules of CronJobs as Kubernetes reads them."""
