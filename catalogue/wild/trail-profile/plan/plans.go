// Package plan keeps clubs to the computing that their plan includes.
package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Plan says how long a club may compute in each period.
type Plan struct {
	Period  time.Duration
	Compute time.Duration
}

var plans = map[string]Plan{
	"basic":   {Period: time.Second, Compute: 80 * time.Millisecond},
	"partner": {Period: time.Second, Compute: 4 * time.Second},
}

// Load reads which club has which plan.
func Load(file string) (map[string]*Budget, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var names map[string]string
	if err := json.Unmarshal(text, &names); err != nil {
		return nil, err
	}
	budgets := map[string]*Budget{}
	for club, name := range names {
		each, ok := plans[name]
		if !ok {
			return nil, fmt.Errorf("%s: no plan %q", club, name)
		}
		budgets[club] = newBudget(club, each)
	}
	return budgets, nil
}
