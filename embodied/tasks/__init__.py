"""Tasks: see the folder's README."""
