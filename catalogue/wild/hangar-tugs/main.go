// Tow orders for aircraft in and out of the hangars.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const tugs = 64

var leadTimes = []time.Duration{200 * time.Millisecond, 350 * time.Millisecond, 600 * time.Millisecond}

// Desk takes orders and gets a slot on the apron for each of them.
type Desk struct {
	variant     string
	control     string
	client      *http.Client
	dispatchers []*Dispatcher
	last        atomic.Int64
}

func NewDesk(variant string, port int) *Desk {
	d := &Desk{
		variant: variant,
		control: fmt.Sprintf("http://127.0.0.1:%d/slots", port+1),
		client: &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512, IdleConnTimeout: time.Minute},
		},
	}
	for i := 0; i < tugs; i++ {
		d.dispatchers = append(d.dispatchers, NewDispatcher())
	}
	return d
}

func (d *Desk) dispatcherOf(number int64) *Dispatcher {
	if d.variant == "mended" {
		return d.dispatchers[number%tugs]
	}
	return d.dispatchers[0]
}

func (d *Desk) slot(o *Order) error {
	answer, err := d.client.Get(fmt.Sprintf("%s?tail=%s&stand=%d", d.control, o.Tail, o.Stand))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("apron control answered %d", answer.StatusCode)
	}
	o.Slot = strings.TrimSpace(string(body))
	return nil
}

func (d *Desk) tow(w http.ResponseWriter, r *http.Request) {
	tail := strings.TrimPrefix(r.URL.Path, "/tows/")
	stand, err := strconv.Atoi(r.URL.Query().Get("stand"))
	if tail == "" || err != nil || stand < 1 || stand > 90 {
		http.Error(w, "need a tail number and a stand from 1 to 90", http.StatusBadRequest)
		return
	}
	number := d.last.Add(1)
	lead := leadTimes[int(number)%len(leadTimes)]
	o := &Order{Number: number, Tail: tail, Stand: stand, Due: time.Now().Add(lead).Format(time.RFC3339Nano)}
	ask := func() error { return d.slot(o) }
	if d.variant == "healthy" {
		err = ask()
	} else {
		err = d.dispatcherOf(number).Do(o, ask)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(o)
}

func serve(port int, mux *http.ServeMux) {
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), mux))
}

func main() {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		log.Fatal("PORT: ", err)
	}
	variant := os.Getenv("VARIANT")
	mux := http.NewServeMux()
	if len(os.Args) > 1 && os.Args[1] == "control" {
		mux.HandleFunc("/slots", apron(variant))
		serve(port+1, mux)
	}
	mux.HandleFunc("/tows/", NewDesk(variant, port).tow)
	mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ok") })
	serve(port, mux)
}
