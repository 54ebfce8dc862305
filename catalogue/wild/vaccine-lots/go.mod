module vaccine-lots

go 1.21
