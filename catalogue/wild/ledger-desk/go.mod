module ledgerdesk

go 1.22
