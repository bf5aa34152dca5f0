// Package taskservices has what answers the requests of tasks.
package taskservices
