"""Planners: see the folder's README."""
