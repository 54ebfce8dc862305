// Vaccine lots tells a clinic whether a lot may be given, as the national registry has it.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type verdict struct {
	Lot       string `json:"lot"`
	Usable    bool   `json:"usable"`
	Reason    string `json:"reason,omitempty"`
	Expires   string `json:"expires"`
	DaysLeft  int    `json:"days_left"`
	CheckedBy string `json:"checked_by"`
}

type service struct {
	registry *registry
	today    func() time.Time
}

func (s *service) lot(w http.ResponseWriter, r *http.Request) {
	lot := r.URL.Query().Get("lot")
	if len(lot) < 4 || len(lot) > 12 {
		reply(w, http.StatusBadRequest, map[string]string{"error": "lot has four to twelve characters"})
		return
	}
	entry, err := s.registry.lookUp(r.Context(), lot)
	switch {
	case errors.Is(err, errNoAnswer):
		reply(w, http.StatusGatewayTimeout, map[string]string{"error": "registry did not answer"})
		return
	case err != nil:
		reply(w, http.StatusBadGateway, map[string]string{"error": "registry cannot be asked"})
		return
	}
	reply(w, http.StatusOK, s.judge(lot, entry))
}

func (s *service) judge(lot string, entry entry) verdict {
	v := verdict{Lot: lot, Expires: entry.Expires, CheckedBy: entry.Node}
	expires, err := time.Parse(time.DateOnly, entry.Expires)
	if err != nil {
		v.Reason = "expiry date is not known"
		return v
	}
	v.DaysLeft = int(expires.Sub(s.today()).Hours() / 24)
	switch {
	case entry.Recalled:
		v.Reason = "recalled"
	case v.DaysLeft < 0:
		v.Reason = "expired"
	case entry.MaxCelsius > 8:
		v.Reason = "cold chain was broken"
	default:
		v.Usable = true
	}
	return v
}

func health(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Printf("answer not sent: %v", err)
	}
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT is not a number")
	}
	variant := os.Getenv("VARIANT")
	if len(os.Args) > 1 && os.Args[1] == "registry" {
		log.Fatal(serveRegistry(port, variant))
	}
	s := &service{registry: newRegistry(port, policies[variant]), today: time.Now}
	mux := http.NewServeMux()
	mux.HandleFunc("/lots", s.lot)
	mux.HandleFunc("/health", health)
	server := &http.Server{Addr: "127.0.0.1:" + strconv.Itoa(port), Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
