// Command valve-desk serves watering plans to the controllers in the field.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"valvedesk/audit"
	"valvedesk/plans"
)

type config struct {
	Audit struct {
		Delivery string `json:"delivery"`
		Queue    int    `json:"queue"`
		Batch    int    `json:"batch"`
	} `json:"audit"`
	WeatherMS int `json:"weather_ms"`
	Plans     int `json:"plans"`
}

var (
	requests = promauto.NewCounterVec(prometheus.CounterOpts{Name: "http_requests_total", Help: "Requests."}, []string{"code", "method"})
	duration = promauto.NewHistogramVec(prometheus.HistogramOpts{Name: "http_request_duration_seconds", Help: "Time of requests."}, []string{"code", "method"})
	inFlight = promauto.NewGauge(prometheus.GaugeOpts{Name: "http_requests_in_flight", Help: "Requests in progress."})
	dropped  = promauto.NewCounter(prometheus.CounterOpts{Name: "audit_lines_dropped_total", Help: "Audit lines that were not shipped."})
)

type desk struct {
	fields map[int]plans.Field
	delay  time.Duration
	log    *slog.Logger
}

// weather asks the weather service for rain and heat.
func (d *desk) weather(field int) (rain, heat float64) {
	time.Sleep(d.delay) // its answer
	hour := float64(time.Now().Unix()/3600 + int64(field))
	return math.Max(0, math.Sin(hour/9)*2), 18 + 8*math.Cos(hour/24)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (d *desk) plan(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("field"))
	if err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"error": "field is a number"})
		return
	}
	began := time.Now()
	zone := r.URL.Query().Get("zone")
	d.log.Info("plan asked for", "field", id, "zone", zone, "controller", r.RemoteAddr, "agent", r.UserAgent())
	field, ok := d.fields[id]
	if !ok {
		reply(w, http.StatusNotFound, map[string]string{"error": "no such field"})
		return
	}
	rain, heat := d.weather(id)
	slots := plans.Plan(field, zone, rain, heat)
	d.log.Info("plan given", "field", id, "slots", len(slots), "rain", rain, "took", time.Since(began))
	reply(w, http.StatusOK, map[string]any{"field": id, "rain_mm": math.Round(rain*10) / 10, "slots": slots})
}

func (d *desk) field(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.PathValue("field"))
	field, ok := d.fields[id]
	if !ok {
		reply(w, http.StatusNotFound, map[string]string{"error": "no such field"})
		return
	}
	reply(w, http.StatusOK, field)
}

func measured(next http.HandlerFunc) http.Handler {
	return promhttp.InstrumentHandlerInFlight(inFlight,
		promhttp.InstrumentHandlerDuration(duration, promhttp.InstrumentHandlerCounter(requests, next)))
}

func main() {
	port := flag.Int("port", 8080, "port; the collector is on the next")
	path := flag.String("config", "conf/mended.json", "settings")
	flag.Parse()

	var settings config
	text, err := os.ReadFile(*path)
	if err == nil {
		err = json.Unmarshal(text, &settings)
	}
	if err != nil {
		log.Fatalf("settings: %v", err)
	}
	sink, err := audit.Dial(fmt.Sprintf("127.0.0.1:%d", *port+1))
	if err != nil {
		log.Fatalf("collector: %v", err)
	}
	var out io.Writer = sink
	if settings.Audit.Delivery == "queued" {
		out = audit.NewQueue(sink, settings.Audit.Queue, settings.Audit.Batch, func(n int) { dropped.Add(float64(n)) })
	}
	d := &desk{
		fields: plans.Fields(settings.Plans),
		delay:  time.Duration(settings.WeatherMS) * time.Millisecond,
		log:    slog.New(slog.NewJSONHandler(out, nil)),
	}

	mux := http.NewServeMux()
	mux.Handle("GET /plans/{field}", measured(d.plan))
	mux.Handle("GET /fields/{field}", measured(d.field))
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ok") })
	log.Printf("valve desk on port %d", *port)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), mux))
}
