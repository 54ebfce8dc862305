module exportgz

go 1.24
