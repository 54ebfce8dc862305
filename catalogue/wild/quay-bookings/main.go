package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		slog.Error("usage: quay-bookings desk|pilots ADDRESS")
		os.Exit(2)
	}
	cfg := loadConfig()
	var handler http.Handler
	switch os.Args[1] {
	case "pilots":
		handler = pilotsOffice(cfg)
	case "desk":
		db, err := openStore(cfg)
		if err != nil {
			slog.Error("no database", "error", err)
			os.Exit(1)
		}
		defer db.Close()
		handler = routes(&Desk{db: db, pilots: newPilots(cfg.PilotsURL), feeFirst: cfg.FeeFirst}, db)
	}
	server := &http.Server{Addr: os.Args[2], Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	slog.Info("listening", "role", os.Args[1], "address", os.Args[2])
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		slog.Error("server ended", "error", err)
		os.Exit(1)
	}
}
