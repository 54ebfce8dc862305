"""Rules about the distribution of response time: slow paths and pauses."""
