"""Worlds: see the folder's README."""
