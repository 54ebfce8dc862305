package main

import (
	"fmt"
	"net/http"
	"time"
)

// apron stands in for apron control of the airport.
func apron(variant string) http.HandlerFunc {
	wait := 3 * time.Millisecond
	if variant == "healthy" {
		wait = 140 * time.Millisecond
	}
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(wait)
		fmt.Fprintf(w, "TWY-%s-%s\n", r.URL.Query().Get("stand"), time.Now().UTC().Format("150405"))
	}
}
