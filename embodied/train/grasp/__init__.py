"""Recipe ``reach-and-grasp@1``: take a thing from a table by a small camera in the hand."""
