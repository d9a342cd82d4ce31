"""The predicted load of every node over the coming days, kept up to date as pods come and go."""
