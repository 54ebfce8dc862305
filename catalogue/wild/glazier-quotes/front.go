package main

import (
	"net"
	"sync"
	"time"
)

// frontListener is the public listener: it enables TCP keep-alive and counts who is connected.
type frontListener struct {
	*net.TCPListener
	slots chan struct{}
	once  sync.Once
	done  chan struct{}
}

func newFrontListener(inner *net.TCPListener, clients int) *frontListener {
	return &frontListener{TCPListener: inner, slots: make(chan struct{}, clients), done: make(chan struct{})}
}

func (l *frontListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.TCPListener.AcceptTCP()
	if err != nil {
		<-l.slots
		return nil, err
	}
	_ = conn.SetKeepAlive(true)
	_ = conn.SetKeepAlivePeriod(time.Minute)
	return &frontConn{Conn: conn, leave: func() { <-l.slots }}, nil
}

func (l *frontListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.TCPListener.Close()
}

type frontConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

func (c *frontConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
