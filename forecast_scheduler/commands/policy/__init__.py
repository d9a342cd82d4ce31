"""`policy`: checks a policy document, and follows the one in use."""
