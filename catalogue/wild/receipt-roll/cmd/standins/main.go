// standins stands in for the card acquirer and the fiscal signing service.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"
	"time"
)

func main() {
	acquirer := flag.String("acquirer", "127.0.0.1:8081", "address of the acquirer")
	signer := flag.String("signer", "127.0.0.1:8082", "address of the signing service")
	card := flag.Duration("card", 120*time.Millisecond, "time for a payment")
	sign := flag.Duration("sign", 30*time.Millisecond, "time for a signature")
	flag.Parse()

	var payments atomic.Int64
	cards := http.NewServeMux()
	cards.HandleFunc("POST /payments", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(*card)
		fmt.Fprintf(w, "PAY-%08d\n", payments.Add(1))
	})
	signatures := http.NewServeMux()
	signatures.HandleFunc("POST /signatures", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(*sign)
		mac := hmac.New(sha256.New, []byte("only-for-this-machine"))
		fmt.Fprint(mac, r.FormValue("till"), "|", r.FormValue("number"), "|", r.FormValue("cents"), "|", r.FormValue("sold_at"))
		fmt.Fprintln(w, hex.EncodeToString(mac.Sum(nil)))
	})
	go func() { log.Fatal(http.ListenAndServe(*acquirer, cards)) }()
	log.Fatal(http.ListenAndServe(*signer, signatures))
}
