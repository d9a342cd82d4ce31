"""CronJobs: what comes when."""
