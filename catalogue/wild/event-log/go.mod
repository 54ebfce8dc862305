module eventlog

go 1.24

require modernc.org/sqlite v1.40.1
