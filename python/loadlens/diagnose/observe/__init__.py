"""What several rules ask of Facts, and how signals become a grade; no rule is in here."""
