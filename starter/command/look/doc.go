// Package look is the commands that show runs and change nothing: list, status, top, show,
// diff, trace, stacks, export, and their columns and lines.
package look
