package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Warn("answer not written", "error", err)
	}
}

func routes(desk *Desk, db *sql.DB) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(db, "harbour"),
	)
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "http_request_duration_seconds", Help: "Time from request to answer.", Buckets: prometheus.DefBuckets,
	}, []string{"code", "method"})
	open := prometheus.NewGauge(prometheus.GaugeOpts{Name: "http_requests_in_flight", Help: "Requests in work."})
	registry.MustRegister(took, open)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /berths", func(w http.ResponseWriter, r *http.Request) {
		berths, err := desk.List(r.Context(), r.FormValue("quay"))
		if err != nil {
			writeJSON(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, berths)
	})
	mux.HandleFunc("/berths/assign", func(w http.ResponseWriter, r *http.Request) {
		tonnage, err := strconv.Atoi(r.FormValue("tonnage"))
		if err != nil || r.FormValue("ship") == "" {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "ship and tonnage are needed"})
			return
		}
		start := time.Now()
		booking, err := desk.Assign(r.Context(), Call{Ship: r.FormValue("ship"), Tonnage: tonnage})
		switch {
		case errors.Is(err, errNoBerth):
			writeJSON(w, http.StatusConflict, map[string]string{"error": err.Error()})
		case err != nil:
			slog.Error("booking failed", "ship", r.FormValue("ship"), "error", err)
			writeJSON(w, http.StatusBadGateway, map[string]string{"error": "booking failed"})
		default:
			slog.Info("booked", "id", booking.ID, "berth", booking.Berth.ID, "ms", time.Since(start).Milliseconds())
			writeJSON(w, http.StatusOK, booking)
		}
	})
	counted := promhttp.InstrumentHandlerInFlight(open, promhttp.InstrumentHandlerDuration(took, mux))
	root := http.NewServeMux()
	root.Handle("/", counted)
	root.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return root
}
