"""Cascaded flight control of a quadrotor: position → attitude → body rates → rotor thrusts, in plain floats."""
