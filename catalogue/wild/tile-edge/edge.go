// Tileedge keeps map tiles near the users and revalidates them with the origin.
package main

import (
	"crypto/sha1"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type tile struct {
	etag string
	body []byte
}

type edge struct {
	origin  string
	client  *http.Client
	mu      sync.Mutex
	tiles   map[string]tile
	reads   map[string]int
	careful bool
}

// get returns the tile as the origin has it now; the body is only sent again when it changed.
func (e *edge) get(path string) (tile, error) {
	if e.careful {
		return e.getUnlocked(path)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reads[path]++
	fresh, err := e.revalidate(path, e.tiles[path])
	if err != nil {
		return tile{}, err
	}
	e.tiles[path] = fresh
	return fresh, nil
}

func (e *edge) getUnlocked(path string) (tile, error) {
	e.mu.Lock()
	have := e.tiles[path]
	e.reads[path]++
	e.mu.Unlock()
	fresh, err := e.revalidate(path, have)
	if err != nil {
		return tile{}, err
	}
	e.mu.Lock()
	e.tiles[path] = fresh
	e.mu.Unlock()
	return fresh, nil
}

func (e *edge) revalidate(path string, have tile) (tile, error) {
	req, err := http.NewRequest(http.MethodGet, e.origin+path, nil)
	if err != nil {
		return tile{}, err
	}
	if have.etag != "" {
		req.Header.Set("If-None-Match", have.etag)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return tile{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return tile{}, err
	}
	switch resp.StatusCode {
	case http.StatusNotModified:
		return have, nil
	case http.StatusOK:
		return tile{etag: resp.Header.Get("ETag"), body: body}, nil
	}
	return tile{}, fmt.Errorf("origin: %s", resp.Status)
}

// startOrigin serves tiles after a fixed time, to any number of callers.
func startOrigin(takes time.Duration) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(takes)
		tag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha1.Sum([]byte(r.URL.Path)))[:12])
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, strings.Repeat(r.URL.Path+"\n", 200))
	}))
	return "http://" + l.Addr().String()
}

func main() {
	variant := os.Getenv("VARIANT")
	login, takes := 100*time.Millisecond, 25*time.Millisecond
	if variant == "healthy" {
		takes = 80 * time.Millisecond
	}
	e := &edge{
		origin:  startOrigin(takes),
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: time.Minute},
		tiles:   map[string]tile{},
		reads:   map[string]int{},
		careful: variant == "mended" || variant == "healthy",
	}
	http.HandleFunc("/tiles/", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(login) // the account service says whether the key may see this map
		t, err := e.get(r.URL.Path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("ETag", t.etag)
		w.Write(t.body)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
