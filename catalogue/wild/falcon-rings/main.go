// Falcon-rings tells a falconer whose bird wears a ring, and whether its papers are in order.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

var errUnknown = errors.New("unknown ring")

type Ring struct {
	Number  string `json:"number"`
	Species string `json:"species"`
	Keeper  string `json:"keeper"`
	Hatched int    `json:"hatched"`
}

type Papers struct {
	Ring    Ring   `json:"ring"`
	Annex   string `json:"annex"`
	InOrder bool   `json:"inOrder"`
	Checked string `json:"checked"`
}

var annexes = map[string]string{"peregrine": "A", "saker": "A", "gyrfalcon": "A", "merlin": "A", "harris hawk": "B"}

// Registry asks the national ring registry.
type Registry struct {
	base   string
	client *http.Client
}

func newRegistry(base string) *Registry {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	return &Registry{base: base, client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

func (r *Registry) get(ctx context.Context, number string) (Ring, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/rings/"+number, nil)
	if err != nil {
		return Ring{}, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return Ring{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return Ring{}, errUnknown
	}
	if resp.StatusCode != http.StatusOK {
		return Ring{}, fmt.Errorf("registry answered %s", resp.Status)
	}
	var ring Ring
	if err := json.NewDecoder(resp.Body).Decode(&ring); err != nil {
		return Ring{}, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return ring, err
}

type server struct {
	registry func() *Registry
	stats    *Stats
}

func (s *server) papers(w http.ResponseWriter, req *http.Request) {
	began := time.Now()
	number := strings.ToUpper(strings.TrimPrefix(req.URL.Path, "/papers/"))
	ring, err := s.registry().get(req.Context(), number)
	switch {
	case errors.Is(err, errUnknown):
		s.fail(w, http.StatusNotFound, err, began)
	case err != nil:
		s.fail(w, http.StatusBadGateway, err, began)
	default:
		annex := annexes[ring.Species]
		writeJSON(w, http.StatusOK, Papers{
			Ring:    ring,
			Annex:   annex,
			InOrder: annex != "" && ring.Hatched > 1997,
			Checked: began.UTC().Format(time.RFC3339),
		})
		s.stats.observe(http.StatusOK, time.Since(began))
	}
}

func (s *server) fail(w http.ResponseWriter, status int, err error, began time.Time) {
	text := "the registry cannot be asked now"
	if status == http.StatusNotFound {
		text = err.Error()
	}
	writeJSON(w, status, map[string]string{"error": text})
	s.stats.observe(status, time.Since(began))
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT: ", err)
	}
	variant := os.Getenv("VARIANT")
	if len(os.Args) > 1 && os.Args[1] == "registry" {
		log.Fatal(serveRegistry(port+1, variant))
	}

	base := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	shared := newRegistry(base)
	s := &server{stats: newStats(), registry: func() *Registry { return shared }}
	if variant == "flawed" {
		s.registry = func() *Registry { return newRegistry(base) }
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/papers/", s.papers)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/metrics", s.stats)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}
