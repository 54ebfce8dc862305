// Two goroutines compute on one processor, and many wake up all the time and wait for it.
package main

import (
	"os"
	"runtime"
	"strconv"
	"time"
)

var sum uint64

func spin() {
	for {
		for n := uint64(0); n < 1<<20; n++ {
			sum += n * n
		}
	}
}

func nap() {
	for {
		time.Sleep(time.Millisecond)
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	seconds, _ := strconv.Atoi(os.Args[1])
	for range 20 {
		go nap()
	}
	go spin()
	go spin()
	time.Sleep(time.Duration(seconds) * time.Second)
}
