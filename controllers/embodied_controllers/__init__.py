"""Controllers in NumPy alone: the same code runs in simulation, in the loop and on a robot."""
