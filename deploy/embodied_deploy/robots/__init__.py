"""Robots of the device side that need no hardware."""
