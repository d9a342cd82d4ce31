"""Options that several commands share, named and explained alike everywhere."""
