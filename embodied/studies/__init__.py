"""Studies: see the folder's README."""
