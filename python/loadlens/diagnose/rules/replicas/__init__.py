"""Rules about the replicas behind a balancer."""
