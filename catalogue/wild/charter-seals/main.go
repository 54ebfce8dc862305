package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type server struct {
	registry *registry
	sealer   sealer
}

type extract struct {
	Charter string    `json:"charter"`
	Owner   string    `json:"owner"`
	Folio   int       `json:"folio"`
	Issued  time.Time `json:"issued"`
	Seal    string    `json:"seal"`
}

func (s *server) extract(w http.ResponseWriter, r *http.Request) {
	number := r.PathValue("number")
	entry, err := s.registry.find(r.Context(), number)
	if err != nil {
		log.Printf("registry: %v", err)
		http.Error(w, "registry unavailable", http.StatusBadGateway)
		return
	}
	out := extract{Charter: number, Owner: entry.Owner, Folio: entry.Folio, Issued: time.Now().UTC().Truncate(time.Second)}
	out.Seal, err = s.sealer.seal(out)
	if err != nil {
		log.Printf("seal: %v", err)
		http.Error(w, "cannot seal", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		log.Printf("write: %v", err)
	}
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatalf("PORT: %v", err)
	}
	variant := os.Getenv("VARIANT")
	delay := 50 * time.Millisecond
	if variant == "healthy" {
		delay = 240 * time.Millisecond
	}
	go serveRegistry(port+1, delay)

	sealer, err := newSealer("parish of st. wendreda", []byte("1487-folio"), variant)
	if err != nil {
		log.Fatalf("sealer: %v", err)
	}
	s := &server{registry: newRegistry(port + 1), sealer: sealer}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /charters/{number}/extract", s.extract)
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	log.Printf("charter-seals on %d", port)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+strconv.Itoa(port), mux))
}
