package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"
)

// Offer is what the wholesaler can deliver for a hamper.
type Offer struct {
	Item  string `json:"item"`
	Maker string `json:"maker"`
	Pence int    `json:"pence"`
}

var (
	items  = []string{"Stilton", "oatcakes", "damson jam", "scotch eggs", "elderflower", "pork pie", "shortbread", "chutney"}
	makers = []string{"Hartley & Daughters", "Low Mill", "Pye Bros", "The Old Dairy"}
)

// serveWholesaler is a stand-in of the wholesaler's ordering system.
func serveWholesaler(addr string, latency time.Duration) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /offers/{hamper}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		hash := fnv.New32a()
		fmt.Fprint(hash, r.PathValue("hamper"))
		seed := int(hash.Sum32() % 1000)
		offers := make([]Offer, 0, 6)
		for n := range 6 {
			offers = append(offers, Offer{
				Item:  items[(seed+n)%len(items)],
				Maker: makers[(seed+3*n)%len(makers)],
				Pence: 250 + (seed*(n+7))%900,
			})
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(offers)
	})
	panic(http.ListenAndServe(addr, mux))
}
