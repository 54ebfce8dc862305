package hostline

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// replies brings the messages that come in to those who wait for them.
type replies interface {
	expect(id string)
	deliver(frame []byte)
	await(id string) (*AvailRS, error)
	fail(err error)
}

// Line is the connection to the host. The carrier allows one for each sales office.
type Line struct {
	conn    net.Conn
	writing sync.Mutex
	out     *bufio.Writer
	last    atomic.Int64
	replies replies
}

// Dial connects to the host, which may still be starting.
func Dial(addr string, direct bool) (*Line, error) {
	var conn net.Conn
	var err error
	for range 100 {
		if conn, err = net.Dial("tcp", addr); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return nil, err
	}
	line := &Line{conn: conn, out: bufio.NewWriter(conn)}
	if direct {
		line.replies = newDispatch()
	} else {
		line.replies = newMailbox()
	}
	go line.read()
	return line, nil
}

func (l *Line) read() {
	in := bufio.NewReaderSize(l.conn, 64<<10)
	for {
		frame, err := ReadFrame(in)
		if err != nil {
			l.replies.fail(fmt.Errorf("reservation host: %w", err))
			return
		}
		l.replies.deliver(frame)
	}
}

// Cabins asks the host for the free cabins of a sailing.
func (l *Line) Cabins(sailing string, guests int) (*AvailRS, error) {
	id := "FL" + strconv.FormatInt(l.last.Add(1), 10)
	request := AvailRQ{
		Header:  Header{MsgID: id, Sender: "FERRYLINK", Sent: time.Now().UTC().Format(time.RFC3339Nano)},
		Sailing: sailing,
		Guests:  guests,
	}
	l.replies.expect(id)
	l.writing.Lock()
	err := WriteFrame(l.out, request)
	l.writing.Unlock()
	if err != nil {
		return nil, err
	}
	return l.replies.await(id)
}
