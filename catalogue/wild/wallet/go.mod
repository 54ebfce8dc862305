module fjordpay/wallet

go 1.24

require (
	github.com/jackc/pgx/v5 v5.7.6
	github.com/prometheus/client_golang v1.23.2
)
