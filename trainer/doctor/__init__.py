"""What in a history limits the forecast: each check looks for one cause, and says what mends it."""
