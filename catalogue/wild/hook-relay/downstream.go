package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// startReceiver plays the customer's webhook receiver. It takes a little longer with every request that it has at the
// time, and finishes each one even if the caller has gone.
func startReceiver(base, each time.Duration) string {
	var present atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		n := present.Add(1)
		time.Sleep(base + time.Duration(n)*each)
		present.Add(-1)
		fmt.Fprintln(w, "ok")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, http.HandlerFunc(handler))
	return "http://" + l.Addr().String()
}
