// Package route knows on which shard an account is.
package route

import "sort"

// Shards is the number of shards of the ledger.
const Shards = 8

// The last account of each shard but the last one; as many accounts on each, counted in spring 2019.
var bounds = []int{10150000, 10300000, 10450000, 10600000, 10750000, 10900000, 11050000}

// ByRange routes by number.
func ByRange(account int) int {
	return sort.SearchInts(bounds, account)
}
