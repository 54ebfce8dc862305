package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

const controllerLatency = 60 * time.Millisecond

type Supply struct {
	Product string  `json:"product"`
	Trays   int     `json:"trays"`
	NextMin int     `json:"next_min"`
	Batches []Batch `json:"batches"`
}

type config struct {
	places  int
	stand   time.Duration
	latency time.Duration
}

func configFor(variant string) config {
	switch variant {
	case "mended":
		return config{places: 400, stand: 60 * time.Millisecond, latency: controllerLatency}
	case "healthy":
		return config{places: 400, stand: 60 * time.Millisecond, latency: 140 * time.Millisecond}
	}
	return config{places: 15, stand: 60 * time.Millisecond, latency: controllerLatency}
}

func supply(product string, batches []Batch) Supply {
	total := Supply{Product: product, NextMin: -1, Batches: batches}
	for _, batch := range batches {
		total.Trays += batch.Trays
		if total.NextMin < 0 || batch.ReadyMin < total.NextMin {
			total.NextMin = batch.ReadyMin
		}
	}
	return total
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT: ", err)
	}
	chosen := configFor(os.Getenv("VARIANT"))
	if err := serveController(port+1, chosen.latency); err != nil {
		log.Fatal(err)
	}
	ovens := NewOvens(port + 1)
	door := NewAdmission(chosen.places, chosen.stand)

	products := http.NewServeMux()
	products.HandleFunc("GET /products/{product}/trays", func(w http.ResponseWriter, r *http.Request) {
		product := r.PathValue("product")
		batches, err := ovens.Batches(r.Context(), product)
		if err != nil {
			log.Printf("%s: %v", product, err)
			reply(w, http.StatusBadGateway, map[string]string{"error": "ovens do not answer"})
			return
		}
		reply(w, http.StatusOK, supply(product, batches))
	})

	mux := http.NewServeMux()
	mux.Handle("/products/", door.Guard(products))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]string{"status": "up"})
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}
