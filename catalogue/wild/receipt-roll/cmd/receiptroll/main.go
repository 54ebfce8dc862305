// receiptroll takes the sales of a shop's tills.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"tills.example/receipt-roll/remote"
	"tills.example/receipt-roll/roll"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	file := flag.String("db", "receipts.db", "database")
	acquirer := flag.String("acquirer", "http://127.0.0.1:8081", "card acquirer")
	signer := flag.String("signer", "http://127.0.0.1:8082", "fiscal signing service")
	flag.Parse()

	receipts, err := roll.Open(*file, remote.Signer(*signer))
	if err != nil {
		log.Fatal(err)
	}
	add := receipts.AddReserved
	if os.Getenv("VARIANT") == "flawed" {
		add = receipts.Add
	}
	cards := remote.Acquirer(*acquirer)

	http.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	http.HandleFunc("/tills/{till}/sale", func(w http.ResponseWriter, r *http.Request) {
		till, err := strconv.Atoi(r.PathValue("till"))
		if err != nil || till < 1 || till > 5 {
			http.Error(w, "no such till", http.StatusNotFound)
			return
		}
		cents, err := strconv.ParseInt(r.FormValue("cents"), 10, 64)
		if err != nil || cents <= 0 {
			http.Error(w, "cents is not an amount", http.StatusBadRequest)
			return
		}
		payment, err := cards.Book(r.Context(), cents)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		receipt, err := add(r.Context(), roll.Receipt{Till: till, Cents: cents, SoldAt: time.Now().UTC(), Payment: payment})
		if err != nil {
			log.Printf("till %d: %v", till, err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(receipt)
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
