package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

var errBusy = errors.New("wholesaler busy")

// Wholesaler asks the ordering system for offers, over a limited number of lines.
type Wholesaler struct {
	base     string
	client   *http.Client
	lines    chan struct{}
	patience time.Duration
}

// NewWholesaler returns a client with so many lines.
func NewWholesaler(base string, lines int) *Wholesaler {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = lines
	transport.MaxIdleConnsPerHost = lines
	return &Wholesaler{
		base:     base,
		client:   &http.Client{Transport: transport, Timeout: 5 * time.Second},
		lines:    make(chan struct{}, lines),
		patience: 150 * time.Millisecond,
	}
}

// Offers returns what can be delivered for the hamper.
func (w *Wholesaler) Offers(ctx context.Context, hamper string) ([]Offer, error) {
	timer := time.NewTimer(w.patience)
	defer timer.Stop()
	select {
	case w.lines <- struct{}{}:
		defer func() { <-w.lines }()
	case <-timer.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/offers/"+hamper, nil)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("wholesaler: %s", response.Status)
	}
	var offers []Offer
	if err := json.NewDecoder(response.Body).Decode(&offers); err != nil {
		return nil, err
	}
	return offers, nil
}

// Hamper is what the shop's page shows.
type Hamper struct {
	Name     string  `json:"name"`
	Persons  int     `json:"persons"`
	Contents []Offer `json:"contents"`
	Pence    int     `json:"pence"`
}

var persons = map[string]int{"riverside": 4, "cricket": 6, "proms": 2, "races": 8}

type shop struct {
	wholesaler *Wholesaler
	isStrict   bool
}

func (s *shop) hamper(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	count, known := persons[name]
	if !known {
		http.NotFound(w, r)
		return
	}
	hamper := Hamper{Name: name, Persons: count}
	offers, err := s.wholesaler.Offers(r.Context(), name)
	if err != nil && s.isStrict {
		log.Printf("hamper %s: %v", name, err)
		http.Error(w, "contents are not known, please try again", http.StatusServiceUnavailable)
		return
	}
	if err != nil {
		offers = []Offer{}
	}
	for _, offer := range offers {
		hamper.Pence += offer.Pence * count
	}
	hamper.Contents = offers
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(hamper)
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT: ", err)
	}
	variant := os.Getenv("VARIANT")
	lines, latency := 12, 80*time.Millisecond
	switch variant {
	case "mended":
		lines = 256
	case "healthy":
		lines, latency = 256, 180*time.Millisecond
	}
	remote := fmt.Sprintf("127.0.0.1:%d", port+1)
	go serveWholesaler(remote, latency)

	s := &shop{wholesaler: NewWholesaler("http://"+remote, lines), isStrict: variant != "flawed"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hampers/{name}", s.hamper)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ok") })
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}
