// Package diskspace finds the file system of a directory that may not exist yet, and this process's
// free space on it.
package diskspace
