// Hookrelay delivers an order's events to the customer's webhook and answers when they have arrived.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

type policy struct {
	attempts int
	timeout  time.Duration
	pause    time.Duration
}

var policies = map[string]policy{
	"flawed":  {attempts: 5, timeout: 113 * time.Millisecond},
	"mended":  {attempts: 2, timeout: 3 * time.Second, pause: 400 * time.Millisecond},
	"healthy": {attempts: 2, timeout: 3 * time.Second, pause: 400 * time.Millisecond},
}

var (
	requestSeconds = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "hookrelay_request_duration_seconds", Help: "Time of a delivery.", Buckets: prometheus.ExponentialBuckets(.05, 1.6, 9),
	})
	deliveries = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "hookrelay_deliveries_total", Help: "Attempts by result.",
	}, []string{"result"})
)

type relay struct {
	target string
	policy policy
	client *http.Client
}

func (r *relay) attempt(ctx context.Context, event string) error {
	ctx, cancel := context.WithTimeout(ctx, r.policy.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.target+"/"+event, nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (r *relay) deliver(ctx context.Context, event string) (err error) {
	for i := range r.policy.attempts {
		if i > 0 {
			time.Sleep(r.policy.pause)
		}
		if err = r.attempt(ctx, event); err == nil {
			deliveries.WithLabelValues("ok").Inc()
			return nil
		}
		deliveries.WithLabelValues("failed").Inc()
	}
	return err
}

func main() {
	variant := os.Getenv("VARIANT")
	p, ok := policies[variant]
	if !ok {
		p = policies["flawed"]
	}
	each := 500 * time.Microsecond
	if variant == "healthy" {
		each = 0
	}
	r := &relay{
		target: startReceiver(100*time.Millisecond, each),
		policy: p,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}},
	}
	http.HandleFunc("/deliver/{event}", func(w http.ResponseWriter, req *http.Request) {
		defer prometheus.NewTimer(requestSeconds).ObserveDuration()
		time.Sleep(60 * time.Millisecond) // the order system, for the event's content
		if err := r.deliver(req.Context(), req.PathValue("event")); err != nil {
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
			return
		}
		fmt.Fprintf(w, "delivered %s\n", req.PathValue("event"))
	})
	http.Handle("/metrics", promhttp.Handler())
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
