"""A record into figures: per trial, per case, per load curve, and the facts that rules may see."""
