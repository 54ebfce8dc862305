module picnic.example/hampers

go 1.22
