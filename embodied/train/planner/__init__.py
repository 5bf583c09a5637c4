"""Recipe of the compact planner: camera images and an instruction to the next skill and its arguments."""
