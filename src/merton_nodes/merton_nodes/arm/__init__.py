"""The arm: the node that carries actions out, and the stop."""
