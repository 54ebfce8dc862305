module falconrings

go 1.21
