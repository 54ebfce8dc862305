package hostline

import (
	"encoding/xml"
	"slices"
	"sync"
)

// mailbox keeps what came in until the one who waits for it fetches it.
type mailbox struct {
	mu      sync.Mutex
	arrived *sync.Cond
	inbox   [][]byte
	err     error
}

func newMailbox() *mailbox {
	m := &mailbox{}
	m.arrived = sync.NewCond(&m.mu)
	return m
}

func (m *mailbox) expect(string) {}

func (m *mailbox) deliver(frame []byte) {
	m.put(func() { m.inbox = append(m.inbox, frame) })
}

func (m *mailbox) fail(err error) {
	m.put(func() { m.err = err })
}

func (m *mailbox) put(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	m.arrived.Broadcast()
}

func (m *mailbox) await(id string) (*AvailRS, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		for i, frame := range m.inbox {
			answer := &AvailRS{}
			if err := xml.Unmarshal(frame, answer); err != nil {
				continue
			}
			if answer.Header.CorrelID == id {
				m.inbox = slices.Delete(m.inbox, i, i+1)
				return answer, nil
			}
		}
		if m.err != nil {
			return nil, m.err
		}
		m.arrived.Wait()
	}
}
