"""A robot served by one process and driven by another, over a stream socket."""
