package main

import (
	"context"
	"sync"
	"time"
)

// Pacer spaces calls to the station network evenly.
type Pacer struct {
	mu    sync.Mutex
	every time.Duration
	slack time.Duration
	next  time.Time
}

func NewPacer(perSecond float64, burst int) *Pacer {
	every := time.Duration(float64(time.Second) / perSecond)
	return &Pacer{every: every, slack: every * time.Duration(burst)}
}

// Wait returns when the caller may go on, or when its context ends.
func (p *Pacer) Wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-p.slack); p.next.Before(earliest) {
		p.next = earliest
	}
	at := p.next
	p.next = p.next.Add(p.every)
	p.mu.Unlock()

	pause := at.Sub(now)
	if pause <= 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
