CREATE INDEX tickets_customer ON tickets (customer, opened_at DESC);
