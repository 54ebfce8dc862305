package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log"
	"net/http"
	"path"
	"time"
)

type entry struct {
	Owner string `json:"owner"`
	Folio int    `json:"folio"`
}

type registry struct {
	base   string
	client *http.Client
}

func newRegistry(port int) *registry {
	transport := &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second}
	return &registry{
		base:   fmt.Sprintf("http://127.0.0.1:%d/entries/", port),
		client: &http.Client{Transport: transport, Timeout: 20 * time.Second},
	}
}

func (r *registry) find(ctx context.Context, number string) (entry, error) {
	var found entry
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+number, nil)
	if err != nil {
		return found, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return found, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return found, fmt.Errorf("status %d", answer.StatusCode)
	}
	return found, json.NewDecoder(answer.Body).Decode(&found)
}

// serveRegistry stands for the county's registry.
func serveRegistry(port int, delay time.Duration) {
	owners := []string{"Abbey of Ely", "J. Thorne", "Guild of Dyers", "A. Peyton", "Manor of Doddington"}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(delay)
		sum := fnv.New32a()
		sum.Write([]byte(path.Base(r.URL.Path)))
		number := int(sum.Sum32() >> 1)
		_ = json.NewEncoder(w).Encode(entry{Owner: owners[number%len(owners)], Folio: 1 + number%380})
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), handler))
}
