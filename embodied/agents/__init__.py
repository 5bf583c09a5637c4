"""Agents: see the folder's README."""
