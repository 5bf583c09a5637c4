"""Autonomous mobile robot with a lifting deck."""
