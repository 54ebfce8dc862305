// Package remote calls the card acquirer and the fiscal signing service.
package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tills.example/receipt-roll/roll"
)

var client = func() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 200
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}()

func post(ctx context.Context, address string, form url.Values) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", address, answer.Status)
	}
	return strings.TrimSpace(string(body)), nil
}

// Acquirer books card payments.
type Acquirer string

// Book books an amount and returns the reference of the payment.
func (a Acquirer) Book(ctx context.Context, cents int64) (string, error) {
	return post(ctx, string(a)+"/payments", url.Values{"cents": {strconv.FormatInt(cents, 10)}})
}

// Signer is the fiscal signing service.
type Signer string

// Sign returns the signature of a receipt.
func (s Signer) Sign(ctx context.Context, receipt roll.Receipt) (string, error) {
	return post(ctx, string(s)+"/signatures", url.Values{
		"till":    {strconv.Itoa(receipt.Till)},
		"number":  {strconv.FormatInt(receipt.Number, 10)},
		"cents":   {strconv.FormatInt(receipt.Cents, 10)},
		"sold_at": {receipt.SoldAt.Format(time.RFC3339)},
	})
}
