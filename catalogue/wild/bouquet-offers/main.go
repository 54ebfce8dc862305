// Offers of a florist: bouquets for an occasion, put together from what the growers have today.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

var variant = os.Getenv("VARIANT")

// Bouquet is one offer of the page.
type Bouquet struct {
	SKU    string   `json:"sku"`
	Title  string   `json:"title"`
	Stems  []string `json:"stems"`
	Cents  int      `json:"cents"`
	InDays int      `json:"in_days"`
}

// Page is the answer for an occasion.
type Page struct {
	Occasion string    `json:"occasion"`
	Bouquets []Bouquet `json:"bouquets"`
}

var stems = []string{"rose", "peony", "tulip", "gerbera", "iris", "lisianthus", "ranunculus", "eucalyptus"}

var errBusy = errors.New("growers: no line free")

// Growers is a client of the auction's stock service; it keeps a few lines open to it.
type Growers struct {
	url      string
	client   *http.Client
	lines    chan struct{}
	patience time.Duration
}

func newGrowers(url string, lines int, patience time.Duration) *Growers {
	transport := &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: lines}
	return &Growers{
		url:      url,
		client:   &http.Client{Transport: transport, Timeout: 5 * time.Second},
		lines:    make(chan struct{}, lines),
		patience: patience,
	}
}

// Available returns today's bouquets for an occasion.
func (g *Growers) Available(ctx context.Context, occasion string) ([]Bouquet, error) {
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case g.lines <- struct{}{}:
		defer func() { <-g.lines }()
	case <-timer.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/stock?for="+occasion, nil)
	if err != nil {
		return nil, err
	}
	answer, err := g.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var found []Bouquet
	return found, json.NewDecoder(answer.Body).Decode(&found)
}

func classics() []Bouquet {
	return []Bouquet{{SKU: "classic-1", Title: "A dozen roses", Stems: stems[:1], Cents: 3900, InDays: 3}}
}

func offers(growers *Growers) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		occasion := r.PathValue("occasion")
		found, err := growers.Available(r.Context(), occasion)
		if err != nil {
			found = classics()
		}
		body, err := json.Marshal(Page{Occasion: occasion, Bouquets: found})
		if err != nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}
}

// auction stands in for the stock service of the flower auction.
func auction(latency time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		occasion := r.URL.Query().Get("for")
		sum := fnv.New32a()
		sum.Write([]byte(occasion))
		first := int(sum.Sum32() % uint32(len(stems)))
		var found []Bouquet
		for i := range 12 {
			a, b := stems[(first+i)%len(stems)], stems[(first+3*i+1)%len(stems)]
			found = append(found, Bouquet{
				SKU:    fmt.Sprintf("%s-%02d", occasion, i),
				Title:  fmt.Sprintf("%s with %s", a, b),
				Stems:  []string{a, b, "greenery"},
				Cents:  2400 + 350*i,
				InDays: 1 + i%3,
			})
		}
		json.NewEncoder(w).Encode(found)
	}
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT is not a number")
	}
	lines, patience, latency := 6, 50*time.Millisecond, 40*time.Millisecond
	switch variant {
	case "mended":
		lines, patience = 256, 5*time.Second
	case "healthy":
		lines, patience, latency = 256, 5*time.Second, 180*time.Millisecond
	}
	remote, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(remote, auction(latency))

	growers := newGrowers(fmt.Sprintf("http://127.0.0.1:%d", port+1), lines, patience)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /offers/{occasion}", offers(growers))
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}
