"""`render`: what templates make of one pod."""
