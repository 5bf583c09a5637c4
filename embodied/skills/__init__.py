"""Skills: see the folder's README."""
