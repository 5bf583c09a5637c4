"""Record: see the folder's README."""
