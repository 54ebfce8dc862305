module bouquets

go 1.22
