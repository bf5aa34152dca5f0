// Package server has the commands for the Temporal server: dev, server ui, server env and server codec.
package server
