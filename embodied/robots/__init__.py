"""Robots: see the folder's README."""
