// Ledgerd answers questions for balances out of the sharded ledger.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"ledgerdesk/internal/route"
)

func main() {
	port := flag.Int("port", 8080, "port to listen on")
	shards := flag.Int("shards", 8081, "port of the first shard")
	consent := flag.Int("consent", 8089, "port of the consent service")
	flag.Parse()

	desk := &desk{
		client:  newClient(),
		route:   route.ByHash,
		consent: fmt.Sprintf("http://127.0.0.1:%d", *consent),
	}
	if variant := os.Getenv("VARIANT"); variant == "" || variant == "flawed" {
		desk.route = route.ByRange
	}
	for n := range route.Shards {
		desk.shards = append(desk.shards, fmt.Sprintf("http://127.0.0.1:%d", *shards+n))
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /accounts/{account}/balance", desk.balance)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{
		Addr:              fmt.Sprintf("127.0.0.1:%d", *port),
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}

func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 128
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.Print(err)
	}
}
