"""The cluster in columns, what every node scores for a pod, and the replay that shows what placing by it changes."""
