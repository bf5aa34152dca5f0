// Package model makes the models of pages from known facts of runs. It asks nothing: callers
// bring what they have asked a server and hosts.
package model
