module cinema.example/matinee

go 1.24
