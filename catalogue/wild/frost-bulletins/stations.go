package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"time"
)

type Reading struct {
	Station  string  `json:"station"`
	AirC     float64 `json:"air_c"`
	WetBulbC float64 `json:"wet_bulb_c"`
	WindMS   float64 `json:"wind_ms"`
}

// Network is the client of the weather stations in the orchards.
type Network struct {
	base string
	http *http.Client
	pace *Pacer
}

func NewNetwork(base string, pace *Pacer) *Network {
	return &Network{
		base: base,
		http: &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512},
		},
		pace: pace,
	}
}

func (n *Network) Read(ctx context.Context, station string) (Reading, error) {
	var reading Reading
	if n.pace != nil {
		if err := n.pace.Wait(ctx); err != nil {
			return reading, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.base+"/readings/"+station, nil)
	if err != nil {
		return reading, err
	}
	answer, err := n.http.Do(request)
	if err != nil {
		return reading, err
	}
	defer answer.Body.Close()
	return reading, json.NewDecoder(answer.Body).Decode(&reading)
}

// serveStations stands in for the station network.
func serveStations(port int, latency time.Duration) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readings/{station}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		sum := fnv.New32a()
		sum.Write([]byte(r.PathValue("station")))
		air := float64(sum.Sum32()%140)/10 - 6
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(Reading{r.PathValue("station"), air, air - 1.4, float64(sum.Sum32()%50) / 10})
	})
	go http.Serve(listener, mux)
	return nil
}
