package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"time"
)

// startFlagState serves a stand-in of the flag state's registry, and returns the roots to trust it by.
func startFlagState(port int, variant string) (*x509.CertPool, error) {
	key, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{Organization: []string{"Flag State Administration"}, CommonName: "localhost"},
		DNSNames:              []string{"localhost"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)

	wait := 15 * time.Millisecond
	if variant == "healthy" {
		wait = 300 * time.Millisecond
	}
	flags := []string{"Malta", "Panama", "Liberia", "Cyprus", "Norway"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /seafarers/{number}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(wait)
		number, err := strconv.Atoi(r.PathValue("number"))
		if err != nil || number > 900_000 {
			http.Error(w, "unknown", http.StatusNotFound)
			return
		}
		expires := func(months int) string { return time.Now().AddDate(0, months, 0).Format(time.DateOnly) }
		writeJSON(w, http.StatusOK, seafarer{
			Number: number,
			Flag:   flags[number%len(flags)],
			Certificates: []certificate{
				{"Basic safety", expires(number%40 - 3)},
				{"Medical", expires(number%23 - 1)},
				{"Watchkeeping", expires(number % 50)},
			},
		})
	})
	server := &http.Server{
		Addr:      fmt.Sprintf("127.0.0.1:%d", port),
		Handler:   mux,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}},
	}
	go server.ListenAndServeTLS("", "")
	return roots, nil
}
