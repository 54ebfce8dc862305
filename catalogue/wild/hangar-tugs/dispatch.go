package main

import (
	"sort"
	"sync"
	"time"
)

// Order asks for one tow of an aircraft.
type Order struct {
	Number int64  `json:"number"`
	Tail   string `json:"tail"`
	Stand  int    `json:"stand"`
	Due    string `json:"due"`
	Slot   string `json:"slot"`
}

// Dispatcher lets one order at a time talk to apron control, the one that is due first.
type Dispatcher struct {
	mu      sync.Mutex
	turn    *sync.Cond
	talking bool
	waiting []*Order
}

func NewDispatcher() *Dispatcher {
	d := &Dispatcher{}
	d.turn = sync.NewCond(&d.mu)
	return d
}

func due(o *Order) time.Time {
	t, err := time.Parse(time.RFC3339Nano, o.Due)
	if err != nil {
		return time.Time{}
	}
	return t
}

func (d *Dispatcher) isNext(o *Order) bool {
	sorted := append([]*Order(nil), d.waiting...)
	sort.SliceStable(sorted, func(i, j int) bool { return due(sorted[i]).Before(due(sorted[j])) })
	return sorted[0] == o && !d.talking
}

// Do runs talk when it is the order's turn.
func (d *Dispatcher) Do(o *Order, talk func() error) error {
	d.mu.Lock()
	d.waiting = append(d.waiting, o)
	for !d.isNext(o) {
		d.turn.Wait()
	}
	for i, each := range d.waiting {
		if each == o {
			d.waiting = append(d.waiting[:i], d.waiting[i+1:]...)
			break
		}
	}
	d.talking = true
	d.mu.Unlock()

	defer func() {
		d.mu.Lock()
		d.talking = false
		d.turn.Broadcast()
		d.mu.Unlock()
	}()
	return talk()
}
