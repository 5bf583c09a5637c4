"""Rules instead of a model: an honest offline baseline. See the folder's README."""
