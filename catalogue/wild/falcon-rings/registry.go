package main

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"
)

var species = []string{"peregrine", "saker", "gyrfalcon", "merlin", "harris hawk"}

// serveRegistry stands in for the national registry of rings.
func serveRegistry(port int, variant string) error {
	delay := 60 * time.Millisecond
	if variant == "healthy" {
		delay = 150 * time.Millisecond
	}
	handler := func(w http.ResponseWriter, req *http.Request) {
		time.Sleep(delay)
		number := strings.TrimPrefix(req.URL.Path, "/rings/")
		digest := fnv.New32a()
		_, _ = digest.Write([]byte(number))
		sum := int(digest.Sum32() >> 1)
		writeJSON(w, http.StatusOK, Ring{
			Number:  number,
			Species: species[sum%len(species)],
			Keeper:  fmt.Sprintf("K-%05d", sum%90000),
			Hatched: 1999 + sum%26,
		})
	}
	server := &http.Server{
		Addr:        fmt.Sprintf("127.0.0.1:%d", port),
		Handler:     http.HandlerFunc(handler),
		IdleTimeout: 4 * time.Second,
	}
	return server.ListenAndServe()
}
