package roll

import (
	"context"
	"time"
)

// Add numbers, signs and keeps a receipt, all in one transaction: a number that is not signed is not used.
func (r *Roll) Add(ctx context.Context, receipt Receipt) (Receipt, error) {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return receipt, err
	}
	defer tx.Rollback()
	if err := tx.QueryRowContext(ctx, next, receipt.Till).Scan(&receipt.Number); err != nil {
		return receipt, err
	}
	signature, err := r.signer.Sign(ctx, receipt)
	if err != nil {
		return receipt, err
	}
	receipt.Signature = signature
	_, err = tx.ExecContext(ctx, insert, receipt.Till, receipt.Number, receipt.Cents,
		receipt.SoldAt.Format(time.RFC3339), receipt.Payment, receipt.Signature)
	if err != nil {
		return receipt, err
	}
	return receipt, tx.Commit()
}
