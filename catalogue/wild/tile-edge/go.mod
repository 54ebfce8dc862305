module tileedge

go 1.24
