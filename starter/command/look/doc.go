// Package look is the commands that show runs and change nothing: list, status (with --why, --usage, --barriers), top, show,
// diff, trace, stacks, export, and their columns and lines.
package look
