// Package server has the commands for the Temporal server: dev, ui, env and codec-server.
package server
