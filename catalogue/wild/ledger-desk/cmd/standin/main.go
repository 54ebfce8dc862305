// Stands in for the eight shards of the ledger, each with four connections to its disk, and on the next port for the
// consent service of the bank.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

const (
	shards      = 8
	shardReads  = 4
	shardTime   = 40 * time.Millisecond
	consentTime = 100 * time.Millisecond
)

func shard(n int) http.Handler {
	reads := make(chan struct{}, shardReads)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /balances/{account}", func(w http.ResponseWriter, r *http.Request) {
		reads <- struct{}{}
		time.Sleep(shardTime)
		<-reads
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"cents":%d,"currency":"EUR"}`, len(r.PathValue("account"))*1909+n)
	})
	return mux
}

func consent(w http.ResponseWriter, _ *http.Request) {
	wait := consentTime
	if os.Getenv("VARIANT") == "healthy" {
		wait *= 3
	}
	time.Sleep(wait)
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	port := flag.Int("port", 8081, "port of the first shard")
	flag.Parse()
	for n := range shards {
		go func() { log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port+n), shard(n))) }()
	}
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port+shards), http.HandlerFunc(consent)))
}
