module example.com/glazier-quotes

go 1.22
