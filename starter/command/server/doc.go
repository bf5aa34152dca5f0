// Package server implements the commands for the Temporal server: dev, ui, server env and server
// codec.
package server
