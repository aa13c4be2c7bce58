"""Ratings of agents and test cases from matches, by maximum likelihood and by AGI-Elo, and predictions from them."""
