package main

import "log/slog"

const sealRounds = 500

// Book books moves between depots.
type Book struct {
	depots []*Depot
	sorted bool
	log    *slog.Logger
}

// Move is one booked move.
type Move struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Cartons int    `json:"cartons"`
	Driver  string `json:"driver"`
}

func (b *Book) move(from, to *Depot, cartons int) error {
	if b.sorted {
		unlock := lockById(from, to)
		defer unlock()
		return transfer(from, to, cartons)
	}
	unlock := lockInTurn(from, to)
	defer unlock()
	return transfer(from, to, cartons)
}

func transfer(from, to *Depot, cartons int) error {
	if err := from.take(cartons); err != nil {
		return err
	}
	to.bring(cartons)
	return nil
}

func lockInTurn(from, to *Depot) func() {
	from.mu.Lock()
	from.seal(0)
	to.mu.Lock()
	return func() {
		to.mu.Unlock()
		from.mu.Unlock()
	}
}

func lockById(from, to *Depot) func() {
	first, second := from, to
	if second.id < first.id {
		first, second = second, first
	}
	first.mu.Lock()
	second.mu.Lock()
	from.seal(0)
	return func() {
		second.mu.Unlock()
		first.mu.Unlock()
	}
}
