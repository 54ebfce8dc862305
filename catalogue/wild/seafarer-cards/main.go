// Seafarer-cards tells crewing agents whether a seafarer's certificates are in order.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

type certificate struct {
	Title   string `json:"title"`
	Expires string `json:"expires"`
}

type seafarer struct {
	Number       int           `json:"number"`
	Flag         string        `json:"flag"`
	Certificates []certificate `json:"certificates"`
}

type card struct {
	seafarer
	Fit     bool     `json:"fit_for_service"`
	Missing []string `json:"missing,omitempty"`
}

var errUnknown = errors.New("unknown seafarer")

// registry is the client of the flag state's registry.
type registry struct {
	base   string
	client *http.Client
}

func newRegistry(base string, roots *x509.CertPool, variant string) *registry {
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   20 * time.Second,
		ResponseHeaderTimeout: 20 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		DisableKeepAlives:     true,
	}
	if variant != "flawed" {
		transport.DisableKeepAlives = false
		transport.MaxIdleConnsPerHost = 256
	}
	return &registry{base: base, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

func (r *registry) find(ctx context.Context, number int) (*seafarer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/seafarers/%d", r.base, number), nil)
	if err != nil {
		return nil, err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
		return nil, errUnknown
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("registry answered %s", res.Status)
	}
	var found seafarer
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, err
	}
	return &found, nil
}

func judge(found *seafarer, today string) card {
	required := map[string]bool{"Basic safety": false, "Medical": false, "Watchkeeping": false}
	for _, each := range found.Certificates {
		if _, ok := required[each.Title]; ok && each.Expires > today {
			required[each.Title] = true
		}
	}
	answer := card{seafarer: *found, Fit: true}
	for _, title := range []string{"Basic safety", "Medical", "Watchkeeping"} {
		if !required[title] {
			answer.Fit = false
			answer.Missing = append(answer.Missing, title)
		}
	}
	return answer
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Printf("write: %v", err)
	}
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT is not a number")
	}
	variant := os.Getenv("VARIANT")
	roots, err := startFlagState(port+1, variant)
	if err != nil {
		log.Fatal(err)
	}
	source := newRegistry(fmt.Sprintf("https://localhost:%d", port+1), roots, variant)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /cards/{number}", func(w http.ResponseWriter, r *http.Request) {
		number, err := strconv.Atoi(r.PathValue("number"))
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "not a number"})
			return
		}
		found, err := source.find(r.Context(), number)
		switch {
		case errors.Is(err, errUnknown):
			writeJSON(w, http.StatusNotFound, map[string]string{"error": err.Error()})
		case err != nil:
			log.Printf("registry: %v", err)
			writeJSON(w, http.StatusBadGateway, map[string]string{"error": "registry is not available"})
		default:
			writeJSON(w, http.StatusOK, judge(found, time.Now().Format(time.DateOnly)))
		}
	})
	server := &http.Server{Addr: fmt.Sprintf(":%d", port), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
