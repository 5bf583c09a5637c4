"""Tasks in a home."""
