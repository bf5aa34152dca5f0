// Package units formats counts, sizes and durations with readable units.
package units
