"""Cli: see the folder's README."""
