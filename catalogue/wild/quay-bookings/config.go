package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Config is what the desk reads from its environment.
type Config struct {
	DSN        string
	PilotsURL  string
	MaxOpen    int
	PilotsTake time.Duration
	FeeFirst   bool
}

func loadConfig() Config {
	port, err := strconv.Atoi(os.Getenv("PORT"))
	if err != nil {
		port = 8080
	}
	cfg := Config{
		DSN:        fmt.Sprintf("postgres://harbour@127.0.0.1:%d/postgres?sslmode=disable", port+2),
		PilotsURL:  fmt.Sprintf("http://127.0.0.1:%d", port+1),
		MaxOpen:    5,
		PilotsTake: 60 * time.Millisecond,
	}
	switch os.Getenv("VARIANT") {
	case "mended":
		cfg.FeeFirst = true
	case "healthy":
		cfg.FeeFirst = true
		cfg.MaxOpen = 72
		cfg.PilotsTake = 110 * time.Millisecond
	}
	return cfg
}
