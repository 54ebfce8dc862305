// Quotes for replacement panes: price of the glass from the float works, plus cutting, edging and fitting.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

type pane struct {
	Glass    string  `json:"glass"`
	WidthMM  int     `json:"width_mm"`
	HeightMM int     `json:"height_mm"`
	AreaM2   float64 `json:"area_m2"`
}

type quote struct {
	Pane      pane   `json:"pane"`
	GlassCts  int    `json:"glass_cents"`
	LabourCts int    `json:"labour_cents"`
	TotalCts  int    `json:"total_cents"`
	ValidTo   string `json:"valid_to"`
}

type settings struct {
	clients int
	works   time.Duration
}

func load(variant string) settings {
	s := settings{clients: 16, works: 60 * time.Millisecond}
	switch variant {
	case "mended":
		s.clients = 4096
	case "healthy":
		s.clients, s.works = 4096, 220*time.Millisecond
	}
	return s
}

var edging = map[string]int{"float": 180, "toughened": 420, "laminated": 510, "obscure": 260}

type server struct {
	works *worksClient
}

func (s *server) quote(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	width, errW := strconv.Atoi(q.Get("w"))
	height, errH := strconv.Atoi(q.Get("h"))
	perMetre, known := edging[q.Get("glass")]
	if errW != nil || errH != nil || !known || width < 100 || height < 100 || width > 3200 || height > 6000 {
		http.Error(w, `{"error":"glass, w and h are needed"}`, http.StatusBadRequest)
		return
	}
	area := float64(width) * float64(height) / 1e6
	price, err := s.works.perSquareMetre(r.Context(), q.Get("glass"))
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":%q}`, err), http.StatusBadGateway)
		return
	}
	perimeter := 2 * float64(width+height) / 1000
	out := quote{
		Pane:      pane{q.Get("glass"), width, height, area},
		GlassCts:  int(area*float64(price) + 0.5),
		LabourCts: 4500 + int(perimeter*float64(perMetre)),
		ValidTo:   time.Now().AddDate(0, 0, 14).Format(time.DateOnly),
	}
	out.TotalCts = out.GlassCts + out.LabourCts
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT: ", err)
	}
	s := load(os.Getenv("VARIANT"))
	go serveWorks(port+1, s.works)

	app := &server{works: newWorksClient(port + 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /quote", app.quote)
	mux.HandleFunc("GET /glass", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(edging)
	})

	inner, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		log.Fatal(err)
	}
	front := newFrontListener(inner, s.clients)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go func() {
		<-stop.Done()
		_ = web.Close()
	}()
	log.Printf("glazier quotes on %d", port)
	if err := web.Serve(front); err != http.ErrServerClosed {
		log.Fatal(err)
	}
}
