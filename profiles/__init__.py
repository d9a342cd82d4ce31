"""Lists of filters and scores for online, GPU and job pods, and what runs beside them."""
