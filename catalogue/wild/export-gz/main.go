// Exportgz serves a nightly price list to resellers, compressed.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

type article struct {
	ID     int      `json:"id"`
	Name   string   `json:"name"`
	EAN    string   `json:"ean"`
	Cents  int      `json:"cents"`
	Stock  int      `json:"stock"`
	Groups []string `json:"groups"`
}

func priceList(n int) []byte {
	list := make([]article, n)
	seed := uint32(2026)
	for i := range list {
		seed = seed*1664525 + 1013904223
		list[i] = article{
			ID: i, Name: fmt.Sprintf("Article %d, size %d", seed%4000, seed>>28), EAN: fmt.Sprintf("57%011d", seed),
			Cents: int(seed % 90000), Stock: int(seed >> 20 % 50), Groups: []string{"household", "spring", "sale"},
		}
	}
	out, err := json.Marshal(list)
	if err != nil {
		log.Fatal(err)
	}
	return out
}

func compress(data []byte, level int) []byte {
	var buf bytes.Buffer
	zw, _ := gzip.NewWriterLevel(&buf, level)
	zw.Write(data)
	zw.Close()
	return buf.Bytes()
}

func main() {
	variant := os.Getenv("VARIANT")
	articles, account := 3000, 100*time.Millisecond
	if variant == "healthy" {
		articles, account = 40, 180*time.Millisecond
	}
	list := priceList(articles)
	var once sync.Once
	var packed []byte

	http.HandleFunc("/export/prices.json.gz", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(account) // the reseller's contract, from the CRM
		var body []byte
		switch variant {
		case "mended", "healthy":
			once.Do(func() { packed = compress(list, gzip.BestCompression) })
			body = packed
		default:
			body = compress(list, gzip.BestCompression)
		}
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body)
	})
	srv := &http.Server{Addr: "127.0.0.1:" + os.Args[1], ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(srv.ListenAndServe())
}
