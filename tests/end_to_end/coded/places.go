// Goroutines that wait in every way, and one that computes; a dump of net/http/pprof says the same of them.
package main

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
	"sync"
	"time"
)

type store[T any] struct {
	slots chan struct{}
	value T
}

func (s *store[T]) get() T {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	time.Sleep(time.Minute)
	return s.value
}

type guarded struct {
	sync.RWMutex
	value int
}

func (g *guarded) read() int { // inlined where it is called
	g.RLock()
	defer g.RUnlock()
	return g.value
}

func deep(left int, then func() int) int {
	if left > 0 {
		return deep(left-1, then) + left
	}
	return then()
}

func spin() int {
	sum := 0
	for turn := 0; ; turn++ {
		sum += turn * sum
	}
}

func main() {
	few := &store[int]{slots: make(chan struct{}, 2)}
	for range [4]int{} {
		go func() { fmt.Println(few.get()) }()
	}
	held := &guarded{}
	held.Lock()
	go func() { fmt.Println(deep(30, held.read)) }()
	go func() { fmt.Println(held.read()) }()
	go spin()
	go func() {
		reads, _, _ := os.Pipe()
		reads.Read(make([]byte, 1))
	}()
	go func() {
		var all sync.WaitGroup
		all.Add(1)
		all.Wait()
	}()
	go func() {
		select {
		case <-time.After(time.Minute):
		case <-make(chan int):
		}
	}()
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
