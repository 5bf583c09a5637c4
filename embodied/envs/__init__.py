"""Envs: see the folder's README."""
