"""The gate: every chunk passes its checks before anything moves, and the stop that ends every motion."""
