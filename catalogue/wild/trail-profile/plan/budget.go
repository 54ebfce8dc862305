package plan

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	budgetSeconds = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tenant_compute_budget_seconds", Help: "Computing that the plan includes per period",
	}, []string{"tenant"})
	usedSeconds = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "tenant_compute_seconds_total", Help: "Computing done",
	}, []string{"tenant"})
	periods = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "tenant_periods_total", Help: "Periods in which the tenant computed",
	}, []string{"tenant"})
	throttledPeriods = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "tenant_throttled_periods_total", Help: "Periods whose budget was used up",
	}, []string{"tenant"})
	throttledSeconds = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "tenant_throttled_seconds_total", Help: "Time that requests waited for the next period",
	}, []string{"tenant"})
)

// Budget is what a club has left in this period.
type Budget struct {
	club string
	plan Plan

	mu        sync.Mutex
	start     time.Time
	spent     time.Duration
	throttled bool
}

func newBudget(club string, plan Plan) *Budget {
	budgetSeconds.WithLabelValues(club).Set(plan.Compute.Seconds())
	return &Budget{club: club, plan: plan, start: time.Now()}
}

// Do runs the work when there is budget for it, and charges the time that it took.
func (b *Budget) Do(ctx context.Context, work func()) error {
	if err := b.wait(ctx); err != nil {
		return err
	}
	began := time.Now()
	work()
	b.charge(time.Since(began))
	return nil
}

func (b *Budget) wait(ctx context.Context) error {
	for {
		left := b.untilNext()
		if left == 0 {
			return nil
		}
		began := time.Now()
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		throttledSeconds.WithLabelValues(b.club).Add(time.Since(began).Seconds())
	}
}

// untilNext returns zero if there is budget left, else how long the period still lasts.
func (b *Budget) untilNext() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if gone := now.Sub(b.start) / b.plan.Period; gone > 0 {
		b.start = b.start.Add(gone * b.plan.Period)
		b.spent = max(0, b.spent-gone*b.plan.Compute) // those who overdraw pay in the next one
		b.throttled = false
		periods.WithLabelValues(b.club).Inc()
	}
	if b.spent < b.plan.Compute {
		return 0
	}
	if !b.throttled {
		b.throttled = true
		throttledPeriods.WithLabelValues(b.club).Inc()
	}
	return b.start.Add(b.plan.Period).Sub(now)
}

func (b *Budget) charge(took time.Duration) {
	b.mu.Lock()
	b.spent += took
	b.mu.Unlock()
	usedSeconds.WithLabelValues(b.club).Add(took.Seconds())
}
