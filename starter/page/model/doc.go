// Package model makes the models of pages from what is known of runs. It asks nothing: callers
// bring what they have asked a server and hosts.
package model
