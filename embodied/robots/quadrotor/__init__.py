"""The Crazyflie 2.1 quadrotor."""
