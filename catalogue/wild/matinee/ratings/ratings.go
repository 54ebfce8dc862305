// Package ratings asks the film board for age ratings.
package ratings

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Unrated is the rating of films that the board has not seen yet: adults only.
const Unrated = "not yet rated (18)"

// Board is the film board's service.
type Board struct {
	url    string
	client *http.Client
	// tidy closes answers that say nothing, too.
	tidy bool
}

// New returns the board at an address.
func New(url string) *Board {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 200
	transport.ResponseHeaderTimeout = 10 * time.Second
	return &Board{url: url, client: &http.Client{Transport: transport}, tidy: os.Getenv("VARIANT") != "flawed"}
}

// Rating returns the rating of a film.
func (b *Board) Rating(film int) (string, error) {
	answer, err := b.client.Get(b.url + "/ratings/" + strconv.Itoa(film))
	if err != nil {
		return "", err
	}
	if b.tidy {
		defer answer.Body.Close()
	}
	if answer.StatusCode == http.StatusNotFound {
		return Unrated, nil // most films in a sneak preview
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("film board: %s", answer.Status)
	}
	var found struct {
		Film   int    `json:"film"`
		Rating string `json:"rating"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return "", err
	}
	return found.Rating, nil
}
