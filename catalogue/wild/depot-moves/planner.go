package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Planner proposes moves.
type Planner struct {
	depots []*Depot
}

func (p *Planner) next() (from, to *Depot) {
	n := rand.IntN(len(p.depots))
	m := (n + 1 + rand.IntN(len(p.depots)-1)) % len(p.depots)
	return p.depots[n], p.depots[m]
}

// Drivers is the client of the drivers' rota.
type Drivers struct {
	fastest, slowest time.Duration
}

func (d *Drivers) free(ctx context.Context, from, to string) (string, error) {
	wait := time.NewTimer(d.fastest + rand.N(d.slowest-d.fastest))
	defer wait.Stop()
	select {
	case <-wait.C:
		return fmt.Sprintf("D%02d", (len(from)*7+len(to))%40), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
