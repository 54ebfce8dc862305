// Clearance estimates of a forwarder: duty and wharfage for a commodity, by the customs register's tariff.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

var variant = os.Getenv("VARIANT")

// Tariff is what the register says about a commodity code.
type Tariff struct {
	Code     string  `json:"code"`
	Duty     float64 `json:"duty"`
	Wharfage int     `json:"wharfage_cents"`
}

// Estimate is the answer to a forwarder.
type Estimate struct {
	Tariff
	Tonnes int `json:"tonnes"`
	Cents  int `json:"cents"`
}

type entry struct {
	tariff Tariff
	until  time.Time
}

// Register is a client of the port's offices: the customs register and the harbour master.
type Register struct {
	url    string
	client *http.Client
	keep   time.Duration
	mu     sync.RWMutex
	known  map[string]entry
}

func newRegister(url string, timeout, keep time.Duration) *Register {
	return &Register{
		url: url,
		client: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 256},
			Timeout:   timeout,
		},
		keep:  keep,
		known: map[string]entry{},
	}
}

func (r *Register) ask(ctx context.Context, code string) (Tariff, error) {
	var tariff Tariff
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/tariff?code="+code, nil)
	if err != nil {
		return tariff, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return tariff, err
	}
	defer answer.Body.Close()
	return tariff, json.NewDecoder(answer.Body).Decode(&tariff)
}

// Berth returns the fee of the harbour's next free berth.
func (r *Register) Berth(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/berth", nil)
	if err != nil {
		return 0, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var fee int
	return fee, json.NewDecoder(answer.Body).Decode(&fee)
}

// Tariff returns the tariff of a commodity code.
func (r *Register) Tariff(ctx context.Context, code string) (Tariff, error) {
	r.mu.RLock()
	found, ok := r.known[code]
	r.mu.RUnlock()
	if ok && time.Now().Before(found.until) {
		return found.tariff, nil
	}
	tariff, err := r.ask(ctx, code)
	if err == nil && r.keep > 0 {
		r.mu.Lock()
		r.known[code] = entry{tariff, time.Now().Add(r.keep)}
		r.mu.Unlock()
	}
	return tariff, err
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}

func estimates(register *Register) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tonnes, err := strconv.Atoi(r.PathValue("tonnes"))
		if err != nil || tonnes < 1 {
			reply(w, http.StatusBadRequest, map[string]string{"error": "tonnes is a number from 1"})
			return
		}
		var tariff Tariff
		fee, err := register.Berth(r.Context())
		if err == nil {
			tariff, err = register.Tariff(r.Context(), r.PathValue("code"))
		}
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout():
			reply(w, http.StatusGatewayTimeout, map[string]string{"error": "the customs register did not answer in time"})
		case err != nil:
			reply(w, http.StatusBadGateway, map[string]string{"error": "the customs register is not available"})
		default:
			cents := fee + tonnes*(tariff.Wharfage+int(tariff.Duty*52000))
			reply(w, http.StatusOK, Estimate{Tariff: tariff, Tonnes: tonnes, Cents: cents})
		}
	}
}

// customs stands in for the register: its mainframe answers from a number of sessions, first come, first served.
func customs(sessions int, latency time.Duration) http.HandlerFunc {
	free := make(chan struct{}, sessions)
	return func(w http.ResponseWriter, r *http.Request) {
		free <- struct{}{}
		time.Sleep(latency)
		<-free
		sum := fnv.New32a()
		sum.Write([]byte(r.URL.Query().Get("code")))
		n := int(sum.Sum32())
		json.NewEncoder(w).Encode(Tariff{r.URL.Query().Get("code"), float64(n%140) / 1000, 180 + n%90})
	}
}

// harbour stands in for the harbour master's office.
func harbour(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(40 * time.Millisecond)
	json.NewEncoder(w).Encode(4500)
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT is not a number")
	}
	sessions, latency := 10, 50*time.Millisecond
	timeout, keep := 250*time.Millisecond, time.Duration(0)
	switch variant {
	case "mended":
		timeout, keep = 3*time.Second, 10*time.Minute
	case "healthy":
		sessions, latency, timeout = 1000, 160*time.Millisecond, 3*time.Second
	}
	remote, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
	if err != nil {
		log.Fatal(err)
	}
	offices := http.NewServeMux()
	offices.HandleFunc("GET /tariff", customs(sessions, latency))
	offices.HandleFunc("GET /berth", harbour)
	go http.Serve(remote, offices)

	register := newRegister(fmt.Sprintf("http://127.0.0.1:%d", port+1), timeout, keep)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /estimates/{code}/{tonnes}", estimates(register))
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}
