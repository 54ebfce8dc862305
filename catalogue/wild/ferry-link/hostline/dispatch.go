package hostline

import (
	"encoding/xml"
	"log"
	"sync"
)

type result struct {
	answer *AvailRS
	err    error
}

// dispatch knows who waits for what and hands over each message once.
type dispatch struct {
	mu      sync.Mutex
	waiting map[string]chan result
	err     error
}

func newDispatch() *dispatch {
	return &dispatch{waiting: map[string]chan result{}}
}

func (d *dispatch) expect(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[id] = make(chan result, 1)
}

func (d *dispatch) deliver(frame []byte) {
	answer := &AvailRS{}
	if err := xml.Unmarshal(frame, answer); err != nil {
		log.Printf("unreadable message: %v", err)
		return
	}
	d.mu.Lock()
	receiver := d.waiting[answer.Header.CorrelID]
	d.mu.Unlock()
	if receiver != nil {
		receiver <- result{answer: answer}
	}
}

func (d *dispatch) await(id string) (*AvailRS, error) {
	d.mu.Lock()
	receiver, err := d.waiting[id], d.err
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	got := <-receiver
	d.mu.Lock()
	delete(d.waiting, id)
	d.mu.Unlock()
	return got.answer, got.err
}

func (d *dispatch) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	for _, receiver := range d.waiting {
		select {
		case receiver <- result{err: err}:
		default:
		}
	}
}
