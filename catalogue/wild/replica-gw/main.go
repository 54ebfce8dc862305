// A gateway in front of three replicas of the offer service, in turn.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var (
	upstreamSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "gateway_upstream_duration_seconds",
		Help:    "Time until an upstream has answered.",
		Buckets: prometheus.ExponentialBuckets(.05, 1.6, 10),
	}, []string{"upstream"})
	inFlight = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gateway_upstream_in_flight", Help: "Requests at an upstream.",
	}, []string{"upstream"})
)

// fleet is the deployment: how many calls to its store a replica makes at a time, and how long one takes.
var fleet = map[string][3]struct {
	storeCalls int
	storeTime  time.Duration
}{
	"flawed":  {{100, 80 * time.Millisecond}, {3, 150 * time.Millisecond}, {100, 80 * time.Millisecond}}, // b has the old chart's values
	"mended":  {{100, 80 * time.Millisecond}, {100, 80 * time.Millisecond}, {100, 80 * time.Millisecond}},
	"healthy": {{100, 120 * time.Millisecond}, {100, 160 * time.Millisecond}, {100, 120 * time.Millisecond}},
}

func replica(addr string, storeCalls int, storeTime time.Duration) {
	store := make(chan struct{}, storeCalls)
	mux := http.NewServeMux()
	mux.HandleFunc("/offers/{id}", func(w http.ResponseWriter, r *http.Request) {
		store <- struct{}{}
		time.Sleep(storeTime) // a read from the remote store
		<-store
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"offer":%q,"cents":%d}`, r.PathValue("id"), 1000+len(r.PathValue("id"))*250)
	})
	log.Fatal(http.ListenAndServe(addr, mux))
}

type gateway struct {
	proxies []*httputil.ReverseProxy
	names   []string
	turn    atomic.Uint64
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := int(g.turn.Add(1) % uint64(len(g.proxies)))
	name := g.names[i]
	inFlight.WithLabelValues(name).Inc()
	defer inFlight.WithLabelValues(name).Dec()
	defer prometheus.NewTimer(upstreamSeconds.WithLabelValues(name)).ObserveDuration()
	g.proxies[i].ServeHTTP(w, r)
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == "replica" {
		calls, _ := strconv.Atoi(os.Args[3])
		took, _ := time.ParseDuration(os.Args[4])
		replica(os.Args[2], calls, took)
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	variant := os.Getenv("VARIANT")
	if _, ok := fleet[variant]; !ok {
		variant = "flawed"
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}
	g := &gateway{}
	for i, each := range fleet[variant] {
		addr := fmt.Sprintf("127.0.0.1:%d", port+1+i)
		_, err := os.StartProcess(os.Args[0],
			[]string{"offers", "replica", addr, strconv.Itoa(each.storeCalls), each.storeTime.String()},
			&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
		if err != nil {
			log.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
		proxy.Transport = transport
		g.proxies = append(g.proxies, proxy)
		g.names = append(g.names, string(rune('a'+i)))
	}
	http.Handle("/metrics", promhttp.Handler())
	http.Handle("/offers/", g)
	log.Print(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), nil))
}
