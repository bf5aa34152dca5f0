// Package remedy defines errors with a separate remedy, so that reports can show it on its own line.
package remedy
