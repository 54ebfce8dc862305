package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"
)

// worksClient asks the float works for today's price of a kind of glass.
type worksClient struct {
	base string
	http *http.Client
}

func newWorksClient(port int) *worksClient {
	return &worksClient{
		base: fmt.Sprintf("http://127.0.0.1:%d", port),
		http: &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024},
		},
	}
}

func (c *worksClient) perSquareMetre(ctx context.Context, glass string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/price/"+glass, nil)
	if err != nil {
		return 0, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var body struct {
		Cents int `json:"cents"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return 0, fmt.Errorf("price of %s: %w", glass, err)
	}
	return body.Cents, nil
}

// serveWorks stands in for the price list of the float works, which is in another country.
func serveWorks(port int, latency time.Duration) {
	prices := map[string]int{"float": 3900, "toughened": 8800, "laminated": 9700, "obscure": 5200}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /price/{glass}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		_ = json.NewEncoder(w).Encode(map[string]int{"cents": prices[r.PathValue("glass")]})
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}
