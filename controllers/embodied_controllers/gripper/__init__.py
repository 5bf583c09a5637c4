"""Grippers: closing with a set force."""
