"""CronJobs and Jobs: what comes when, and how it went."""
