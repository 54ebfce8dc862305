package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Admission lets a number of requests in; others stand at the door for a moment.
type Admission struct {
	places chan struct{}
	stand  time.Duration
}

func NewAdmission(places int, stand time.Duration) *Admission {
	return &Admission{places: make(chan struct{}, places), stand: stand}
}

func (a *Admission) enter(ctx context.Context) bool {
	timer := time.NewTimer(a.stand)
	defer timer.Stop()
	select {
	case a.places <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// Guard answers 503 for requests that find no place.
func (a *Admission) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.enter(r.Context()) {
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusServiceUnavailable, map[string]string{"error": "busy, try again"})
			return
		}
		defer func() { <-a.places }()
		next.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
