module replicagw

go 1.24

require github.com/prometheus/client_golang v1.23.2
