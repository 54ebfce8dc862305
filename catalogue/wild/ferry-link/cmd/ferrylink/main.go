// ferrylink answers the booking site's questions for free cabins from the carriers' reservation host.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"
	"strconv"

	"ferries.example/ferry-link/hostline"
)

type availability struct {
	Sailing string           `json:"sailing"`
	Guests  int              `json:"guests"`
	Cabins  []hostline.Cabin `json:"cabins"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	host := flag.String("host", "127.0.0.1:8081", "reservation host")
	flag.Parse()

	line, err := hostline.Dial(*host, os.Getenv("VARIANT") != "flawed")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /sailings/{sailing}/cabins", func(w http.ResponseWriter, r *http.Request) {
		guests, err := strconv.Atoi(r.URL.Query().Get("guests"))
		if err != nil || guests < 1 || guests > 9 {
			http.Error(w, "guests has to be 1 to 9", http.StatusBadRequest)
			return
		}
		answer, err := line.Cabins(r.PathValue("sailing"), guests)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		found := availability{Sailing: answer.Sailing, Guests: guests, Cabins: []hostline.Cabin{}}
		for _, cabin := range answer.Cabins {
			if cabin.Free > 0 && cabin.Beds >= guests {
				found.Cabins = append(found.Cabins, cabin)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(found)
	})
	log.Fatal(http.ListenAndServe(*listen, mux))
}
