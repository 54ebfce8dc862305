module charter-seals

go 1.24
