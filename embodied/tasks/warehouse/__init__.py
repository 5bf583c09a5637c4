"""Tasks in a warehouse."""
