"""Sensors: see the folder's README."""
