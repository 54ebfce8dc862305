package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite"
)

// Collects page events of visitors in SQLite and says how engaged the visitor is.

var (
	variant = env("VARIANT", "flawed")
	visits  atomic.Int64
)

func env(key, otherwise string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return otherwise
}

func open() (*sql.DB, error) {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("events-%d.db", os.Getpid()))
	db, err := sql.Open("sqlite", file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-65536)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one writer, as SQLite wants it
	stmts := []string{
		`CREATE TABLE event (id INTEGER PRIMARY KEY, visitor INTEGER NOT NULL, page TEXT NOT NULL, at INTEGER NOT NULL)`,
	}
	if variant == "mended" {
		stmts = append(stmts, `CREATE INDEX event_visitor ON event (visitor, page)`)
	}
	for _, stmt := range stmts {
		if _, err := db.Exec(stmt); err != nil {
			return nil, err
		}
	}
	return db, nil
}

func record(db *sql.DB, visitor int64) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.Prepare(`INSERT INTO event (visitor, page, at) VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := range 10 { // the browser sends its events in batches
		if _, err := insert.Exec(visitor, fmt.Sprintf("/articles/%d", (visitor*7+int64(i))%900), time.Now().UnixMilli()); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func engagement(db *sql.DB, visitor int64) (events, pages int, err error) {
	row := db.QueryRow(`SELECT count(*), count(DISTINCT page) FROM event WHERE visitor = ?`, visitor)
	err = row.Scan(&events, &pages)
	return events, pages, err
}

func main() {
	db, err := open()
	if err != nil {
		log.Fatal(err)
	}
	consent := 100 * time.Millisecond
	if variant == "healthy" {
		consent = 180 * time.Millisecond
	}
	http.HandleFunc("/collect", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(consent) // the consent platform must agree first
		visitor := visits.Add(1) % 5000
		if v, err := strconv.ParseInt(r.URL.Query().Get("visitor"), 10, 64); err == nil {
			visitor = v
		}
		if variant == "healthy" {
			fmt.Fprintf(w, `{"visitor":%d,"events":%d}`, visitor, visits.Load())
			return
		}
		if err := record(db, visitor); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		events, pages, err := engagement(db, visitor)
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"visitor": visitor, "events": events, "pages": pages, "engaged": pages > 3})
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
