package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

type Batch struct {
	Oven     int    `json:"oven"`
	Product  string `json:"product"`
	Trays    int    `json:"trays"`
	ReadyMin int    `json:"ready_min"`
}

// Ovens is the client of the oven controller.
type Ovens struct {
	base string
	http *http.Client
}

func NewOvens(port int) *Ovens {
	return &Ovens{
		base: fmt.Sprintf("http://127.0.0.1:%d", port),
		http: &http.Client{
			Timeout:   4 * time.Second,
			Transport: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512},
		},
	}
}

func (o *Ovens) Batches(ctx context.Context, product string) ([]Batch, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base+"/batches/"+product, nil)
	if err != nil {
		return nil, err
	}
	answer, err := o.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("oven controller: %s", answer.Status)
	}
	var batches []Batch
	return batches, json.NewDecoder(answer.Body).Decode(&batches)
}

// serveController stands in for the oven controller.
func serveController(port int, latency time.Duration) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /batches/{product}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		product := r.PathValue("product")
		batches := make([]Batch, 0, 4)
		for oven := 1; oven <= 4; oven++ {
			batches = append(batches, Batch{oven, product, 6 + (oven*len(product))%9, 5 * oven})
		}
		reply(w, http.StatusOK, batches)
	})
	go http.Serve(listener, mux)
	return nil
}
