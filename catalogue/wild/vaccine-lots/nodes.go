package main

import (
	"fmt"
	"net/http"
	"path"
	"time"
)

// serveRegistry stands in for the nodes of the national registry. Outside the healthy variant, the fourth takes calls
// and does not answer them.
func serveRegistry(port int, variant string) error {
	latency := 80 * time.Millisecond
	if variant == "healthy" {
		latency = 160 * time.Millisecond
	}
	ended := make(chan error)
	for i := 1; i <= nodes; i++ {
		silent := i == 4 && variant != "healthy"
		name := fmt.Sprintf("node-%d", i)
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if silent {
				<-r.Context().Done()
				return
			}
			time.Sleep(latency)
			lot := path.Base(r.URL.Path)
			reply(w, http.StatusOK, entry{Node: name, Expires: "2031-05-31", MaxCelsius: 4 + float64(len(lot))/8})
		})
		address := fmt.Sprintf("127.0.0.1:%d", port+i)
		go func() { ended <- http.ListenAndServe(address, handler) }()
	}
	return <-ended
}
