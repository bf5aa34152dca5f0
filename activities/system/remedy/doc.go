// Package remedy defines errors with a separate remedy, so that reports can show the remedy on its
// own line.
package remedy
