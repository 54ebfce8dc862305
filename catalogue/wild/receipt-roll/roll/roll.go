// Package roll keeps the receipts of the tills, numbered without gaps, in a SQLite file.
package roll

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // the driver
)

const schema = `
CREATE TABLE IF NOT EXISTS tills (
	till INTEGER PRIMARY KEY,
	last INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS receipts (
	till      INTEGER NOT NULL REFERENCES tills,
	number    INTEGER NOT NULL,
	cents     INTEGER NOT NULL,
	sold_at   TEXT NOT NULL,
	payment   TEXT NOT NULL,
	signature TEXT NOT NULL,
	PRIMARY KEY (till, number)
) WITHOUT ROWID;
INSERT OR IGNORE INTO tills VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);
`

const (
	next   = `UPDATE tills SET last = last + 1 WHERE till = ? RETURNING last`
	insert = `INSERT INTO receipts (till, number, cents, sold_at, payment, signature) VALUES (?, ?, ?, ?, ?, ?)`
)

// Receipt is a sale.
type Receipt struct {
	Till      int       `json:"till"`
	Number    int64     `json:"number"`
	Cents     int64     `json:"cents"`
	SoldAt    time.Time `json:"sold_at"`
	Payment   string    `json:"payment"`
	Signature string    `json:"signature"`
}

// Signer signs receipts, as the tax office demands.
type Signer interface {
	Sign(ctx context.Context, receipt Receipt) (string, error)
}

// Roll is the receipts of a shop.
type Roll struct {
	db     *sql.DB
	signer Signer
}

// Open opens the file, or makes it.
func Open(file string, signer Signer) (*Roll, error) {
	db, err := sql.Open("sqlite", fmt.Sprintf(
		"file:%s?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)&_txlock=immediate", file))
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(100)
	if _, err := db.Exec(schema); err != nil {
		return nil, err
	}
	return &Roll{db: db, signer: signer}, nil
}
