package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Pilots is the client of the pilots' office.
type Pilots struct {
	base   string
	client *http.Client
}

func newPilots(base string) *Pilots {
	transport := &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute}
	return &Pilots{base: base, client: &http.Client{Transport: transport, Timeout: 5 * time.Second}}
}

// Fee asks what the pilots charge for bringing a ship of that tonnage to the berth.
func (p *Pilots) Fee(ctx context.Context, berth, tonnage int) (int64, error) {
	url := fmt.Sprintf("%s/fees?berth=%d&tonnage=%d", p.base, berth, tonnage)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("pilots' office answered %s", res.Status)
	}
	var body struct {
		FeeCents int64 `json:"fee_cents"`
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		return 0, err
	}
	return body.FeeCents, nil
}

// pilotsOffice stands in for the office's system across town.
func pilotsOffice(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fees", func(w http.ResponseWriter, r *http.Request) {
		tonnage, _ := strconv.Atoi(r.FormValue("tonnage"))
		berth, _ := strconv.Atoi(r.FormValue("berth"))
		time.Sleep(cfg.PilotsTake)
		writeJSON(w, http.StatusOK, map[string]any{"fee_cents": 18000 + tonnage*2 + berth%9*450, "currency": "EUR"})
	})
	return mux
}
