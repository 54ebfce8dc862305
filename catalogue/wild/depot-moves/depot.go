package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
)

// Depot holds cartons of one product and a chain of its bookings.
type Depot struct {
	id   int
	name string

	mu      sync.Mutex
	cartons int
	entries int
	chain   [32]byte
}

var towns = []string{"Lund", "Visby", "Falun", "Umeå", "Kiruna", "Borås", "Gävle", "Ystad", "Motala", "Arvika"}

func newDepots() []*Depot {
	depots := make([]*Depot, len(towns))
	for n, town := range towns {
		depots[n] = &Depot{id: n, name: town, cartons: 20_000 + 731*n, chain: sha256.Sum256([]byte(town))}
	}
	return depots
}

// seal extends the chain by one booking; auditors want each link to be expensive to forge.
func (d *Depot) seal(change int) {
	var entry [40]byte
	copy(entry[:], d.chain[:])
	binary.BigEndian.PutUint64(entry[32:], uint64(int64(change)))
	for range sealRounds {
		d.chain = sha256.Sum256(entry[:])
		copy(entry[:], d.chain[:])
	}
	d.entries++
}

func (d *Depot) take(cartons int) error {
	if d.cartons < cartons {
		return fmt.Errorf("%s has %d cartons, not %d", d.name, d.cartons, cartons)
	}
	d.cartons -= cartons
	d.seal(-cartons)
	return nil
}

func (d *Depot) bring(cartons int) {
	d.cartons += cartons
	d.seal(cartons)
}

func (d *Depot) stock() (cartons, entries int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cartons, d.entries
}
