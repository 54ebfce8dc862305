// matinee is the programme of a cinema.
package main

import (
	"encoding/csv"
	"flag"
	"html/template"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"

	"cinema.example/matinee/ratings"
)

type film struct {
	ID      int
	Title   string
	Minutes int
}

var page = template.Must(template.New("sneak").Parse(`<!doctype html>
<title>Sneak preview</title>
<h1>Tonight, perhaps: {{.Film.Title}}</h1>
<p>{{.Film.Minutes}} minutes, {{.Rating}}. Screen 2, 22:45.</p>
`))

func load(file string) ([]film, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, err
	}
	var films []film
	for _, row := range rows {
		id, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, err
		}
		minutes, err := strconv.Atoi(row[2])
		if err != nil {
			return nil, err
		}
		films = append(films, film{id, row[1], minutes})
	}
	return films, nil
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	address := flag.String("board", "http://127.0.0.1:8081", "film board")
	file := flag.String("films", "films.csv", "films that may be shown")
	flag.Parse()

	films, err := load(*file)
	if err != nil {
		log.Fatal(err)
	}
	board := ratings.New(*address)
	http.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	http.HandleFunc("GET /sneak", func(w http.ResponseWriter, _ *http.Request) {
		tonight := films[rand.IntN(len(films))]
		rating, err := board.Rating(tonight.ID)
		if err != nil {
			log.Printf("rating of %d: %v", tonight.ID, err)
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page.Execute(w, map[string]any{"Film": tonight, "Rating": rating})
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
