package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"time"
)

var errNoBerth = errors.New("no berth is long enough")

// Call is a ship that announces itself.
type Call struct {
	Ship    string
	Tonnage int
}

// Berth is a place at a quay.
type Berth struct {
	ID   int    `json:"id"`
	Quay string `json:"quay"`
}

// Booking is what an agent gets.
type Booking struct {
	ID       int64     `json:"id"`
	Berth    Berth     `json:"berth"`
	Ship     string    `json:"ship"`
	FeeCents int64     `json:"fee_cents"`
	At       time.Time `json:"at"`
}

// Desk books berths.
type Desk struct {
	db       *sql.DB
	pilots   *Pilots
	feeFirst bool
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func pickBerth(ctx context.Context, q querier, call Call) (Berth, error) {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d", call.Ship, time.Now().UnixNano())
	var b Berth
	err := q.QueryRowContext(ctx,
		`select id, quay from berths where max_tonnage >= $1 and id >= $2 order by id limit 1`,
		call.Tonnage, h.Sum32()%300).Scan(&b.ID, &b.Quay)
	if errors.Is(err, sql.ErrNoRows) {
		return b, errNoBerth
	}
	return b, err
}

func insertBooking(ctx context.Context, q querier, b Berth, call Call, fee int64) (Booking, error) {
	out := Booking{Berth: b, Ship: call.Ship, FeeCents: fee}
	err := q.QueryRowContext(ctx,
		`insert into bookings (berth, ship, fee_cents) values ($1, $2, $3) returning id, booked_at`,
		b.ID, call.Ship, fee).Scan(&out.ID, &out.At)
	return out, err
}

// Assign picks a berth and books it.
func (d *Desk) Assign(ctx context.Context, call Call) (Booking, error) {
	if d.feeFirst {
		return d.assignPriced(ctx, call)
	}
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return Booking{}, err
	}
	defer tx.Rollback()
	berth, err := pickBerth(ctx, tx, call)
	if err != nil {
		return Booking{}, err
	}
	fee, err := d.pilots.Fee(ctx, berth.ID, call.Tonnage)
	if err != nil {
		return Booking{}, fmt.Errorf("pilotage: %w", err)
	}
	booking, err := insertBooking(ctx, tx, berth, call, fee)
	if err != nil {
		return Booking{}, err
	}
	return booking, tx.Commit()
}

func (d *Desk) assignPriced(ctx context.Context, call Call) (Booking, error) {
	berth, err := pickBerth(ctx, d.db, call)
	if err != nil {
		return Booking{}, err
	}
	price, err := d.pilots.Fee(ctx, berth.ID, call.Tonnage)
	if err != nil {
		return Booking{}, fmt.Errorf("pilotage: %w", err)
	}
	return insertBooking(ctx, d.db, berth, call, price)
}

// List returns the berths of a quay.
func (d *Desk) List(ctx context.Context, quay string) ([]Berth, error) {
	rows, err := d.db.QueryContext(ctx, `select id, quay from berths where quay = $1 order by id`, quay)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	berths := []Berth{}
	for rows.Next() {
		var b Berth
		if err := rows.Scan(&b.ID, &b.Quay); err != nil {
			return nil, err
		}
		berths = append(berths, b)
	}
	return berths, rows.Err()
}
