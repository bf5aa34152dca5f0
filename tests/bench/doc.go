// Package bench measures what users wait for. Each benchmark prints its figure, the floor or
// the peer measured in the same run, and their ratio. The single figures depend on the machine
// and its load, the ratios much less.
//
//	make bench
package bench
