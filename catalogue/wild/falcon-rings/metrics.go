package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var buckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Stats writes the metrics of the service and its process as Prometheus reads them.
type Stats struct {
	mu      sync.Mutex
	total   map[int]int
	counts  []int
	sum     float64
	n       int
	started time.Time
}

func newStats() *Stats {
	return &Stats{total: map[int]int{}, counts: make([]int, len(buckets)), started: time.Now()}
}

func (s *Stats) observe(status int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total[status]++
	s.n++
	s.sum += took.Seconds()
	for i, bound := range buckets {
		if took.Seconds() <= bound {
			s.counts[i]++
		}
	}
}

func (s *Stats) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(w, "# HELP http_requests_total Requests by status code.\n# TYPE http_requests_total counter")
	for status, n := range s.total {
		fmt.Fprintf(w, "http_requests_total{code=\"%d\",handler=\"/papers\"} %d\n", status, n)
	}
	fmt.Fprintln(w, "# HELP http_request_duration_seconds Time to answer.\n# TYPE http_request_duration_seconds histogram")
	for i, bound := range buckets {
		le := strconv.FormatFloat(bound, 'g', -1, 64)
		fmt.Fprintf(w, "http_request_duration_seconds_bucket{handler=\"/papers\",le=\"%s\"} %d\n", le, s.counts[i])
	}
	fmt.Fprintf(w, "http_request_duration_seconds_bucket{handler=\"/papers\",le=\"+Inf\"} %d\n", s.n)
	fmt.Fprintf(w, "http_request_duration_seconds_sum{handler=\"/papers\"} %g\n", s.sum)
	fmt.Fprintf(w, "http_request_duration_seconds_count{handler=\"/papers\"} %d\n", s.n)
	gauge(w, "go_goroutines", "Number of goroutines that currently exist.", float64(runtime.NumGoroutine()))
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	gauge(w, "go_memstats_heap_alloc_bytes", "Number of heap bytes allocated and still in use.", float64(memory.HeapAlloc))
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		gauge(w, "process_open_fds", "Number of open file descriptors.", float64(len(open)))
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		gauge(w, "process_max_fds", "Maximum number of open file descriptors.", float64(limit.Cur))
	}
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		cpu := float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
		fmt.Fprintf(w, "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %g\n", cpu)
	}
	gauge(w, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.", float64(s.started.Unix()))
}

func gauge(w http.ResponseWriter, name, help string, value float64) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n%s %g\n", name, help, name, name, value)
}
