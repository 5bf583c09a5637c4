"""The trained policies that ship with the project, as signed packages."""
