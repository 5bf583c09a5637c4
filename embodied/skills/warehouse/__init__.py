"""Skills of robots that carry things in a warehouse."""
