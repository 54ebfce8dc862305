package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type Bulletin struct {
	Orchard  string    `json:"orchard"`
	Risk     string    `json:"risk"`
	Advice   string    `json:"advice"`
	WetBulbC float64   `json:"wet_bulb_c"`
	Until    time.Time `json:"until"`
}

type settings struct {
	latency time.Duration
	pace    *Pacer
}

func settingsFor(variant string) settings {
	switch variant {
	case "mended":
		return settings{latency: 30 * time.Millisecond, pace: NewPacer(2400, 200)}
	case "healthy":
		return settings{latency: 140 * time.Millisecond}
	default:
		return settings{latency: 30 * time.Millisecond, pace: NewPacer(120, 20)}
	}
}

func assess(orchard string, reading Reading) Bulletin {
	bulletin := Bulletin{Orchard: orchard, WetBulbC: reading.WetBulbC, Until: time.Now().Add(3 * time.Hour).UTC()}
	switch {
	case reading.WetBulbC <= -2.2:
		bulletin.Risk, bulletin.Advice = "severe", "sprinklers on before midnight"
	case reading.WetBulbC <= 0 && reading.WindMS < 1.5:
		bulletin.Risk, bulletin.Advice = "high", "wind machines on at 0.5 degrees"
	default:
		bulletin.Risk, bulletin.Advice = "none", "no action"
	}
	return bulletin
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT: ", err)
	}
	chosen := settingsFor(os.Getenv("VARIANT"))
	if err := serveStations(port+1, chosen.latency); err != nil {
		log.Fatal(err)
	}
	network := NewNetwork(fmt.Sprintf("http://127.0.0.1:%d", port+1), chosen.pace)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /orchards/{orchard}/bulletin", func(w http.ResponseWriter, r *http.Request) {
		orchard := r.PathValue("orchard")
		reading, err := network.Read(r.Context(), orchard+"-north")
		if err != nil {
			log.Printf("bulletin for %s: %v", orchard, err)
			answer(w, http.StatusBadGateway, map[string]string{"error": "no reading"})
			return
		}
		answer(w, http.StatusOK, assess(orchard, reading))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "up"})
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}
