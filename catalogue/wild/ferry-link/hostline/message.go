// Package hostline talks to the carriers' reservation host: XML messages, each after its length, on one TCP connection.
package hostline

import (
	"bufio"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"io"
)

const maxFrame = 1 << 20

// Header is on top of every message. The host answers in any order; CorrelID says to what.
type Header struct {
	MsgID    string `xml:"MsgId"`
	CorrelID string `xml:"CorrelId"`
	Sender   string `xml:"Sender"`
	Sent     string `xml:"Sent"`
}

// AvailRQ asks for the free cabins of a sailing.
type AvailRQ struct {
	XMLName xml.Name `xml:"AvailRQ"`
	Header  Header   `xml:"Header"`
	Sailing string   `xml:"Sailing"`
	Guests  int      `xml:"Guests"`
}

// Cabin is a category of cabins.
type Cabin struct {
	Code  string `xml:"code,attr" json:"code"`
	Deck  int    `xml:"deck,attr" json:"deck"`
	Beds  int    `xml:"beds,attr" json:"beds"`
	Free  int    `xml:"free,attr" json:"free"`
	Name  string `xml:"Name" json:"name"`
	Fares []Fare `xml:"Fares>Fare" json:"fares"`
}

// Fare is what a cabin costs under some conditions.
type Fare struct {
	Class  string `xml:"class,attr" json:"class"`
	Price  string `xml:"price,attr" json:"price"`
	Cancel string `xml:"Cancel" json:"cancel"`
}

// AvailRS is the answer to AvailRQ.
type AvailRS struct {
	XMLName xml.Name `xml:"AvailRS"`
	Header  Header   `xml:"Header"`
	Sailing string   `xml:"Sailing"`
	Cabins  []Cabin  `xml:"Cabins>Cabin"`
}

// WriteFrame writes a message and flushes it.
func WriteFrame(w *bufio.Writer, message any) error {
	body, err := xml.Marshal(message)
	if err != nil {
		return err
	}
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(body)))
	if _, err := w.Write(size[:]); err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	return w.Flush()
}

// ReadFrame returns the next message, not parsed.
func ReadFrame(r *bufio.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, fmt.Errorf("frame of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
