"""Scenes to fly in."""
