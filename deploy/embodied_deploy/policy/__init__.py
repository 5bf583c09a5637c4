"""From a package to actions: channels of a robot's state into tensors, a session, chunks and recurrent state."""
