module sockwatch

go 1.24
