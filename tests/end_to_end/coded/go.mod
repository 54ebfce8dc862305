module coded

go 1.21
