// Package inspect implements the commands that show runs without changing anything: list, status
// (with --why, --usage, --barriers), show, diff, stacks and export, with their columns and
// lines.
package inspect
