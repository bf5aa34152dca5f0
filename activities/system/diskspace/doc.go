// Package diskspace finds the file system of a directory that may not exist yet, and this process's
// free space on it. It also finds files in shared memory that killed processes have left behind.
// Such files occupy memory until they are removed, and processes receive SIGBUS when none is left.
package diskspace
