// board stands in for the film board's service. It has not rated every fifth film yet.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "address to serve on")
	think := flag.Duration("think", 60*time.Millisecond, "time to answer")
	flag.Parse()
	ages := []string{"from 6", "from 12", "from 0", "from 16"}
	http.HandleFunc("GET /ratings/{film}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(*think)
		film, err := strconv.Atoi(r.PathValue("film"))
		if err != nil || film%5 == 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"type":"about:blank","title":"Not rated","status":404,"detail":"The board has not seen film %d yet."}`, film)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"film":%d,"rating":%q}`, film, ages[film%4])
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
