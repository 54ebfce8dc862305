// terrain stands in for the terrain server: heights along a trail, as big-endian 16 bit metres.
package main

import (
	"encoding/binary"
	"flag"
	"log"
	"math"
	"net/http"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "address to serve on")
	far := flag.Duration("far", 120*time.Millisecond, "time to answer")
	flag.Parse()

	heights := make([]byte, 2*3600)
	for i := 0; i < len(heights)/2; i++ {
		x := float64(i)
		h := 1300 + 700*math.Sin(x/410) + 260*math.Sin(x/97+1) + 60*math.Sin(x/23) + 9*math.Sin(x*1.7)
		binary.BigEndian.PutUint16(heights[2*i:], uint16(int16(h)))
	}
	http.HandleFunc("GET /along/{trail}", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(*far)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write(heights)
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
