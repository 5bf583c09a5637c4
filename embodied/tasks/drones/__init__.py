"""Tasks of the drone yard."""
