// A lock is held during a slow call; the service does not show where its goroutines are.
package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

var lock sync.Mutex

func price() int {
	lock.Lock() // waits
	defer lock.Unlock()
	time.Sleep(20 * time.Millisecond) // holds
	return 7
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, price()) })
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
