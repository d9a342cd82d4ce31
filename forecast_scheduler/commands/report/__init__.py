"""`report`: decisions and predicted peaks against what came."""
