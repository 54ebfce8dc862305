package roll

import (
	"context"
	"time"
)

// AddReserved takes the number first and keeps the receipt once it is signed. A receipt that cannot be signed is kept
// as well, marked as failed, since the numbers must not have gaps.
func (r *Roll) AddReserved(ctx context.Context, receipt Receipt) (Receipt, error) {
	if err := r.db.QueryRowContext(ctx, next, receipt.Till).Scan(&receipt.Number); err != nil {
		return receipt, err
	}
	signature, failed := r.signer.Sign(ctx, receipt)
	if failed != nil {
		signature = "failed: " + failed.Error()
	}
	receipt.Signature = signature
	_, err := r.db.ExecContext(context.WithoutCancel(ctx), insert, receipt.Till, receipt.Number, receipt.Cents,
		receipt.SoldAt.Format(time.RFC3339), receipt.Payment, receipt.Signature)
	if err != nil {
		return receipt, err
	}
	return receipt, failed
}
