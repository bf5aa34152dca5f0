// Package bench measures what users wait for. Each benchmark prints its figure, the floor or peer
// measured in the same run, and their ratio. Figures depend on the machine and its load, ratios
// much less.
//
//	make bench
package bench
