// Package units formats numbers of bytes and durations with readable units.
package units
