// Package barriers lists a run's barriers. Each round is a workflow of its own.
package barriers
