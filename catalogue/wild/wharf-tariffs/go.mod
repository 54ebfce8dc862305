module tariffs

go 1.22
