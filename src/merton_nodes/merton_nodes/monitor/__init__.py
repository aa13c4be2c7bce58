"""The operator's page, fed from the graph."""
