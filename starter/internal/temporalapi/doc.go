// Package temporalapi makes requests of Temporal's API that several packages need.
package temporalapi
