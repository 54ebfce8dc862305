module ferries.example/ferry-link

go 1.24
