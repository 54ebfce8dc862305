// Package audit ships audit lines to the collector.
package audit

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Sink is a connection to the collector. It is an io.Writer for a slog handler: each Write is one line.
type Sink struct {
	mu      sync.Mutex
	conn    net.Conn
	replies *bufio.Reader
}

// Dial connects to the collector, and tries for a while.
func Dial(address string) (*Sink, error) {
	var err error
	for range 50 {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", address, time.Second); err == nil {
			return &Sink{conn: conn, replies: bufio.NewReader(conn)}, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, err
}

// Write ships one line.
func (s *Sink) Write(line []byte) (int, error) {
	if err := s.ship(line, 1); err != nil {
		return 0, err
	}
	return len(line), nil
}

func (s *Sink) ship(lines []byte, count int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	frame := fmt.Appendf(nil, "%d\n", count)
	if _, err := s.conn.Write(append(frame, lines...)); err != nil {
		return err
	}
	answer, err := s.replies.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(answer, "ok ") {
		return fmt.Errorf("collector: %s", strings.TrimSpace(answer))
	}
	return nil
}

// Queue ships lines in batches, in the background. Lines that do not fit are counted and dropped.
type Queue struct {
	lines chan []byte
	sink  *Sink
	batch int
	lost  func(int)
}

// NewQueue starts the shipping.
func NewQueue(sink *Sink, size, batch int, lost func(int)) *Queue {
	q := &Queue{lines: make(chan []byte, size), sink: sink, batch: batch, lost: lost}
	go q.run()
	return q
}

// Write queues one line.
func (q *Queue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.lost(1)
	}
	return len(line), nil
}

func (q *Queue) run() {
	var body []byte
	for line := range q.lines {
		body = append(body[:0], line...)
		count := 1
		for count < q.batch && len(q.lines) > 0 {
			body = append(body, <-q.lines...)
			count++
		}
		if err := q.sink.ship(body, count); err != nil {
			q.lost(count)
		}
	}
}
