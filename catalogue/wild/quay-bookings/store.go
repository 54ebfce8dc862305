package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

const schema = `
create table if not exists berths (
	id int primary key, quay text not null, length_m int not null, max_tonnage int not null);
create table if not exists bookings (
	id bigserial primary key, berth int not null references berths, ship text not null,
	fee_cents bigint not null, booked_at timestamptz not null default now());
create index if not exists bookings_by_berth on bookings (berth, booked_at);
insert into berths select n, 'Q' || n % 9, 120 + (n * 37) % 280, 9000 + (n * 911) % 90000
	from generate_series(1, 400) n on conflict do nothing;
`

func openStore(cfg Config) (*sql.DB, error) {
	db, err := sql.Open("pgx", cfg.DSN)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(cfg.MaxOpen)
	db.SetMaxIdleConns(cfg.MaxOpen)
	db.SetConnMaxIdleTime(5 * time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		if _, err = db.ExecContext(ctx, schema); err == nil {
			return db, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("database did not come up: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
