"""What each profile adds to the scheduler: online, GPU and job pods."""
