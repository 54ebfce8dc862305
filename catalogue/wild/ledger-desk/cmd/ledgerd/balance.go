package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

type desk struct {
	client  *http.Client
	route   func(account int) int
	shards  []string
	consent string
}

type balance struct {
	Account  int    `json:"account"`
	Cents    int64  `json:"cents"`
	Currency string `json:"currency"`
}

func (d *desk) balance(w http.ResponseWriter, r *http.Request) {
	account, err := strconv.Atoi(r.PathValue("account"))
	if err != nil || account <= 0 {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "not an account number"})
		return
	}
	if err := d.get(r.Context(), fmt.Sprintf("%s/consents/%d", d.consent, account), nil); err != nil {
		writeJSON(w, http.StatusBadGateway, map[string]string{"error": err.Error()})
		return
	}
	found := balance{Account: account}
	if err := d.get(r.Context(), fmt.Sprintf("%s/balances/%d", d.shards[d.route(account)], account), &found); err != nil {
		writeJSON(w, http.StatusBadGateway, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, found)
}

func (d *desk) get(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", req.URL.Path, resp.Status)
	}
	if into == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
