"""A made-up team of agents for `paceline demo`: no model, no network, the same work every time."""
