// trailprofile draws elevation profiles for the sites of hiking clubs.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"trails.example/trail-profile/plan"
	"trails.example/trail-profile/profile"
)

var (
	duration = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "http_request_duration_seconds", Help: "Time to answer",
		Buckets: []float64{.05, .1, .15, .2, .3, .5, .75, 1, 1.5, 2.5, 5},
	}, []string{"code", "method"})
	inFlight = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "http_requests_in_flight", Help: "Requests being answered",
	})
	terrainSeconds = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "terrain_request_duration_seconds", Help: "Time for heights from the terrain server",
		Buckets: []float64{.05, .1, .15, .2, .3, .5, 1, 2},
	})
	drawSeconds = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "profile_draw_seconds", Help: "Time to draw",
		Buckets: []float64{.0005, .001, .002, .005, .01, .025, .1},
	})
)

type server struct {
	terrain string
	client  *http.Client
	budgets map[string]*plan.Budget
}

func (s *server) heights(ctx context.Context, trail string) ([]int16, error) {
	timer := prometheus.NewTimer(terrainSeconds)
	defer timer.ObserveDuration()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.terrain+"/along/"+url.PathEscape(trail), nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("terrain: %s", answer.Status)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	heights := make([]int16, len(body)/2)
	for i := range heights {
		heights[i] = int16(binary.BigEndian.Uint16(body[2*i:]))
	}
	return heights, nil
}

func (s *server) profile(w http.ResponseWriter, r *http.Request) {
	budget, ok := s.budgets[r.URL.Query().Get("key")]
	if !ok {
		http.Error(w, "unknown key", http.StatusForbidden)
		return
	}
	trail, ok := strings.CutSuffix(r.PathValue("file"), ".svg")
	if !ok {
		http.NotFound(w, r)
		return
	}
	heights, err := s.heights(r.Context(), trail)
	if err != nil || len(heights) < 2 {
		http.Error(w, "no terrain", http.StatusBadGateway)
		return
	}
	var svg []byte
	err = budget.Do(r.Context(), func() {
		timer := prometheus.NewTimer(drawSeconds)
		svg = profile.Draw(trail, heights)
		timer.ObserveDuration()
	})
	if err != nil {
		return // the client has gone
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Write(svg)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	terrain := flag.String("terrain", "http://127.0.0.1:8081", "terrain server")
	clubs := flag.String("clubs", "clubs.json", "plans of the clubs")
	flag.Parse()

	budgets, err := plan.Load(*clubs)
	if err != nil {
		log.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 256
	s := &server{terrain: *terrain, client: &http.Client{Transport: transport, Timeout: 10 * time.Second}, budgets: budgets}

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.Handle("GET /v1/profiles/{file}", promhttp.InstrumentHandlerInFlight(inFlight,
		promhttp.InstrumentHandlerDuration(duration, http.HandlerFunc(s.profile))))
	log.Fatal(http.ListenAndServe(*listen, mux))
}
