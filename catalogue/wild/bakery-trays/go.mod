module bakerytrays

go 1.22
