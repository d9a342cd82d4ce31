"""The extender over HTTP."""
