"""Rules about services that refuse, time out or repeat under too much load."""
