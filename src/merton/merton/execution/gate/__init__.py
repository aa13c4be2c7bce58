"""Which motions the arm may make: every chunk passes here before anything moves."""
