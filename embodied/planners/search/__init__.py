"""Symbolic planning: search over graphs with the skills' own model. See the folder's README."""
