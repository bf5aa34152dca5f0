// Package diskspace finds the file system of a directory that may not exist yet, and the room
// that this process has there.
package diskspace
