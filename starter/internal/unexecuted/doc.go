// Package unexecuted finds and ends runs that no worker executes. Such a run does not answer
// requests.
package unexecuted
