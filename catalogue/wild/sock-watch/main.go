// Sockwatch probes a customer's endpoint: GET /probe?host=N opens a connection, reads the banner, and reports it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const bannerArg = "banner"

type report struct {
	Host   string `json:"host"`
	Banner string `json:"banner,omitempty"`
	Error  string `json:"error,omitempty"`
	Millis int64  `json:"ms"`
}

// banners plays the probed hosts: a greeting after a while, then the line is closed.
func banners(addr string, after time.Duration) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		log.Fatal(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		time.AfterFunc(after, func() {
			fmt.Fprintf(c, "220 mail.example ESMTP\r\n")
			c.Close()
		})
	}
}

func probe(addr string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, 3*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line), err
}

func main() {
	if os.Args[1] == bannerArg {
		after, _ := time.ParseDuration(os.Args[3])
		banners(os.Args[2], after)
	}
	var port int
	fmt.Sscan(os.Args[1], &port)
	target := fmt.Sprintf("127.0.0.1:%d", port+1)

	http.HandleFunc("/probe", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		banner, err := probe(target)
		rep := report{Host: r.URL.Query().Get("host"), Banner: banner, Millis: time.Since(begin).Milliseconds()}
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			log.Printf("probe: %v", err)
			rep.Error = err.Error()
			w.WriteHeader(http.StatusBadGateway)
		}
		json.NewEncoder(w).Encode(rep)
	})
	log.Print(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), nil))
}
