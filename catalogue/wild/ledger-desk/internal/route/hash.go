package route

import (
	"hash/fnv"
	"strconv"
)

// ByHash routes by a hash of the number.
func ByHash(account int) int {
	h := fnv.New32a()
	h.Write([]byte(strconv.Itoa(account)))
	return int(h.Sum32()>>8) % Shards
}
