// Package model builds pages' models from known facts about runs. It makes no requests: callers
// pass in what they got from servers and hosts.
package model
