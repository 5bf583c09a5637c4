"""Recipes ``quad-hover@1`` and ``quad-waypoint@1``: fly a quadrotor by its rotor thrusts, in wind."""
