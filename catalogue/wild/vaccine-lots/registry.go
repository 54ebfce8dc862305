package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	nodes    = 5
	restTime = 5 * time.Second
)

var errNoAnswer = errors.New("no answer in time")

// policy says how long a node of the registry may take, and how many nodes are asked.
type policy struct {
	perCall time.Duration
	calls   int
}

var policies = map[string]policy{
	"flawed":  {3 * time.Second, 1},
	"mended":  {300 * time.Millisecond, 3},
	"healthy": {3 * time.Second, 1},
}

type entry struct {
	Node       string  `json:"node"`
	Expires    string  `json:"expires"`
	Recalled   bool    `json:"recalled"`
	MaxCelsius float64 `json:"max_celsius"`
}

type node struct {
	base     string
	restsTil atomic.Int64
}

type registry struct {
	client *http.Client
	policy policy
	nodes  []*node
	turn   atomic.Uint64
}

func newRegistry(port int, p policy) *registry {
	transport := &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second}
	r := &registry{client: &http.Client{Transport: transport, Timeout: p.perCall}, policy: p}
	for i := 1; i <= nodes; i++ {
		r.nodes = append(r.nodes, &node{base: fmt.Sprintf("http://127.0.0.1:%d", port+i)})
	}
	return r
}

// next returns the node whose turn it is. With more than one call to spend, nodes that rest are passed over.
func (r *registry) next() *node {
	for range r.nodes {
		n := r.nodes[r.turn.Add(1)%uint64(len(r.nodes))]
		if r.policy.calls == 1 || n.restsTil.Load() < time.Now().UnixNano() {
			return n
		}
	}
	return r.nodes[r.turn.Add(1)%uint64(len(r.nodes))]
}

func (r *registry) lookUp(ctx context.Context, lot string) (entry, error) {
	var found entry
	var err error
	for call := 0; call < r.policy.calls; call++ {
		n := r.next()
		if found, err = r.ask(ctx, n, lot); err == nil {
			return found, nil
		}
		n.restsTil.Store(time.Now().Add(restTime).UnixNano())
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return found, errNoAnswer
	}
	return found, err
}

func (r *registry) ask(ctx context.Context, n *node, lot string) (entry, error) {
	var found entry
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.base+"/entries/"+url.PathEscape(lot), nil)
	if err != nil {
		return found, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return found, fmt.Errorf("registry node answered %s", response.Status)
	}
	return found, json.NewDecoder(response.Body).Decode(&found)
}
