// Package proc reads what Linux tells of processes, and of the boot they belong to, in /proc.
package proc
