// Package proc reads what Linux reports in /proc about processes and their boot.
package proc
