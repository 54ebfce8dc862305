// Command wallet charges customers of a parking app. Each charge credits the parking company.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const schema = `
CREATE TABLE account (id int PRIMARY KEY, name text NOT NULL, cents bigint NOT NULL DEFAULT 0);
CREATE TABLE journal (id bigserial PRIMARY KEY, account int NOT NULL, customer int NOT NULL, cents bigint NOT NULL);
INSERT INTO account SELECT i, 'company ' || i, 0 FROM generate_series(1, 20) i;`

var chargeSeconds = promauto.NewHistogram(prometheus.HistogramOpts{
	Name:    "wallet_charge_duration_seconds",
	Help:    "Time to charge a customer.",
	Buckets: []float64{.05, .1, .15, .2, .3, .5, 1, 2, 5},
})

type wallet struct {
	db      *pgxpool.Pool
	variant string
}

// bank reserves the amount on the customer's card; the bank answers after that time.
func (w *wallet) bank(ctx context.Context, took time.Duration) error {
	select {
	case <-time.After(took):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// chargeInOneTransaction credits the company, then captures at the bank, and commits when the bank agrees.
func (w *wallet) chargeInOneTransaction(ctx context.Context, company, customer int, cents int64) error {
	return pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE account SET cents = cents + $2 WHERE id = $1`, company, cents); err != nil {
			return err
		}
		if err := w.bank(ctx, 25*time.Millisecond); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO journal (account, customer, cents) VALUES ($1, $2, $3)`, company, customer, cents)
		return err
	})
}

// chargeByJournal captures first and only appends; balances are summed up from the journal at night.
func (w *wallet) chargeByJournal(ctx context.Context, company, customer int, cents int64, took time.Duration) error {
	if err := w.bank(ctx, took); err != nil {
		return err
	}
	_, err := w.db.Exec(ctx, `INSERT INTO journal (account, customer, cents) VALUES ($1, $2, $3)`, company, customer, cents)
	return err
}

func (w *wallet) charge(rw http.ResponseWriter, r *http.Request) {
	defer prometheus.NewTimer(chargeSeconds).ObserveDuration()
	company, err := strconv.Atoi(r.PathValue("company"))
	if err != nil || company < 1 || company > 20 {
		http.Error(rw, "no such company", http.StatusNotFound)
		return
	}
	ctx := r.Context()
	if err := w.bank(ctx, 100*time.Millisecond); err != nil { // 3-D Secure
		return
	}
	customer := int(time.Now().UnixMicro() % 100000)
	switch w.variant {
	case "flawed":
		err = w.chargeInOneTransaction(ctx, company, customer, 350)
	case "mended":
		err = w.chargeByJournal(ctx, company, customer, 350, 25*time.Millisecond)
	default:
		err = w.chargeByJournal(ctx, company, customer, 350, 80*time.Millisecond)
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if err != nil {
		log.Printf("charge: %v", err)
		http.Error(rw, "charge failed", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	json.NewEncoder(rw).Encode(map[string]any{"company": company, "customer": customer, "cents": 350})
}

func main() {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.MaxConns = 80
	db, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec(context.Background(), schema); err != nil {
		log.Fatal(err)
	}
	variant := os.Getenv("VARIANT")
	if variant == "" {
		variant = "flawed"
	}
	w := &wallet{db: db, variant: variant}
	http.HandleFunc("GET /companies/{company}/charge", w.charge)
	http.Handle("GET /metrics", promhttp.Handler())
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
