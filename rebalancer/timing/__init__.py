"""When may pods be moved? In the valley of the load, at hours that owners allow, or because of the unforeseen."""
