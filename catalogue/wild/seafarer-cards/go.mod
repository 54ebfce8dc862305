module example.org/seafarercards

go 1.22
