"""Warehouse halls from path-finding maps."""
