"""The extender over HTTP: an application over `ExtenderApi`, its deadline, its limits and its metrics."""
