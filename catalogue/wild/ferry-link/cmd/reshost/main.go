// reshost stands in for the carriers' reservation host: it answers each message after a while, in any order.
package main

import (
	"bufio"
	"encoding/xml"
	"flag"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"ferries.example/ferry-link/hostline"
)

var categories = []struct {
	code, name string
	deck, beds int
	fares      []hostline.Fare
}{
	{"I2", "Inside cabin, two lower beds", 5, 2, fares(8900)},
	{"I4", "Inside cabin, two lower and two upper berths", 5, 4, fares(11900)},
	{"O2", "Outside cabin with window, two lower beds", 8, 2, fares(13900)},
	{"O4", "Outside cabin with window, four berths", 8, 4, fares(16900)},
	{"F5", "Family cabin, five berths and a cot on request", 9, 5, fares(21900)},
	{"C2", "Commodore cabin with minibar and breakfast", 10, 2, fares(27900)},
	{"S2", "Suite with balcony and lounge access", 10, 2, fares(41900)},
	{"A4", "Accessible cabin, near the lift", 7, 4, fares(12900)},
}

func fares(cents int) []hostline.Fare {
	var all []hostline.Fare
	for _, fare := range []struct {
		class, cancel string
		percent       int
	}{
		{"SAVER", "not refundable", 80},
		{"STANDARD", "half the price up to 7 days before", 100},
		{"FLEX", "free of charge until check-in", 125},
	} {
		price := cents * fare.percent / 100
		all = append(all, hostline.Fare{
			Class: fare.class, Price: fmt.Sprintf("%d.%02d", price/100, price%100), Cancel: fare.cancel,
		})
	}
	return all
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "address to serve on")
	think := flag.Duration("think", 60*time.Millisecond, "time to answer")
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
		go serve(conn, *think)
	}
}

func serve(conn net.Conn, think time.Duration) {
	defer conn.Close()
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	var writing sync.Mutex
	for {
		frame, err := hostline.ReadFrame(in)
		if err != nil {
			return
		}
		var request hostline.AvailRQ
		if err := xml.Unmarshal(frame, &request); err != nil {
			log.Print(err)
			return
		}
		time.AfterFunc(think, func() {
			writing.Lock()
			defer writing.Unlock()
			hostline.WriteFrame(out, answer(request))
		})
	}
}

func answer(request hostline.AvailRQ) hostline.AvailRS {
	reply := hostline.AvailRS{
		Header: hostline.Header{
			MsgID:    "RH" + request.Header.MsgID,
			CorrelID: request.Header.MsgID,
			Sender:   "RESHOST",
			Sent:     time.Now().UTC().Format(time.RFC3339Nano),
		},
		Sailing: request.Sailing,
	}
	for i, c := range categories {
		reply.Cabins = append(reply.Cabins, hostline.Cabin{
			Code: c.code, Deck: c.deck, Beds: c.beds, Free: (len(request.Sailing)*7 + i*5) % 23, Name: c.name,
			Fares: c.fares,
		})
	}
	return reply
}
