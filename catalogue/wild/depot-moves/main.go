// Command depot-moves levels the stock of depots.
package main

import (
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var (
	inFlight = promauto.NewGauge(prometheus.GaugeOpts{Name: "http_requests_in_flight", Help: "Requests being served."})
	requests = promauto.NewCounterVec(
		prometheus.CounterOpts{Name: "http_requests_total", Help: "Requests."}, []string{"code", "method"})
	seconds = promauto.NewHistogramVec(
		prometheus.HistogramOpts{Name: "http_request_duration_seconds", Help: "Time to answer."}, []string{"code", "method"})
	moved = promauto.NewCounter(prometheus.CounterOpts{Name: "depot_cartons_moved_total", Help: "Cartons moved."})
)

type server struct {
	book    *Book
	planner *Planner
	drivers *Drivers
	log     *slog.Logger
}

func (s *server) next(w http.ResponseWriter, r *http.Request) {
	cartons, err := strconv.Atoi(r.URL.Query().Get("cartons"))
	if err != nil || cartons < 1 || cartons > 50 {
		reply(w, http.StatusBadRequest, map[string]string{"error": "cartons must be 1 to 50"})
		return
	}
	from, to := s.planner.next()
	driver, err := s.drivers.free(r.Context(), from.name, to.name)
	if err != nil {
		reply(w, http.StatusServiceUnavailable, map[string]string{"error": "no driver"})
		return
	}
	if err := s.book.move(from, to, cartons); err != nil {
		s.log.Warn("not moved", "error", err)
		reply(w, http.StatusConflict, map[string]string{"error": err.Error()})
		return
	}
	moved.Add(float64(cartons))
	reply(w, http.StatusOK, Move{From: from.name, To: to.name, Cartons: cartons, Driver: driver})
}

func (s *server) stock(w http.ResponseWriter, _ *http.Request) {
	all := map[string]int{}
	for _, depot := range s.book.depots {
		all[depot.name], _ = depot.stock()
	}
	reply(w, http.StatusOK, all)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8090", "address to listen on")
	flag.Parse()
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))

	variant := os.Getenv("VARIANT")
	drivers := &Drivers{fastest: 20 * time.Millisecond, slowest: 30 * time.Millisecond}
	if variant == "healthy" {
		drivers = &Drivers{fastest: 85 * time.Millisecond, slowest: 115 * time.Millisecond}
	}
	depots := newDepots()
	s := &server{
		book:    &Book{depots: depots, sorted: variant != "flawed", log: log},
		planner: &Planner{depots: depots},
		drivers: drivers,
		log:     log,
	}

	api := http.NewServeMux()
	api.HandleFunc("GET /moves/next", s.next)
	api.HandleFunc("GET /stock", s.stock)
	measured := promhttp.InstrumentHandlerInFlight(inFlight,
		promhttp.InstrumentHandlerDuration(seconds, promhttp.InstrumentHandlerCounter(requests, api)))

	mux := http.NewServeMux()
	mux.Handle("/", measured)
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	log.Info("listening", "addr", *addr, "depots", len(depots))
	if err := http.ListenAndServe(*addr, mux); err != nil {
		log.Error("stopped", "error", err)
		os.Exit(1)
	}
}
