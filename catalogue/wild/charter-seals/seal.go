package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

const (
	keyRounds = 25_000
	keyBytes  = 32
)

type sealer interface {
	seal(e extract) (string, error)
}

func newSealer(passphrase string, salt []byte, variant string) (sealer, error) {
	if variant == "flawed" {
		return phraseSealer{passphrase, salt}, nil
	}
	key, err := pbkdf2.Key(sha256.New, passphrase, salt, keyRounds, keyBytes)
	return keySealer{key}, err
}

type phraseSealer struct {
	passphrase string
	salt       []byte
}

func (p phraseSealer) seal(e extract) (string, error) {
	key, err := pbkdf2.Key(sha256.New, p.passphrase, p.salt, keyRounds, keyBytes)
	if err != nil {
		return "", err
	}
	return sign(key, e), nil
}

type keySealer struct {
	key []byte
}

func (k keySealer) seal(e extract) (string, error) {
	return sign(k.key, e), nil
}

func sign(key []byte, e extract) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s|%s|%d|%d", e.Charter, e.Owner, e.Folio, e.Issued.Unix())
	return hex.EncodeToString(mac.Sum(nil))
}
