// Package devserver is clusterrun's embedded Temporal: server, Web UI and database in one process,
// for one user on one machine. It is a separate module, because it has many times as many
// dependencies as clusterrun, which never links it, but executes the program clusterrun-devserver.
//
// It adds the following to Temporal's own development server:
//
//   - The settings that decide how long a run's steps take (tuning.go); with the defaults, every
//     step of a run waits tens of milliseconds, and every restart of a task waits a second.
//   - A start that takes about a tenth of a second. As soon as a client can start a run, this is
//     announced by a ready file and a line on stdout (probe.go).
//   - A database file with one owner (lock.go), which survives kill -9 of the server, and which is
//     stamped, so that another program's or an incompatible server's file is refused instead of
//     damaged (stamp.go).
//   - A clean stop on a signal, after being idle for a while (idle.go), or when the program that
//     started the server exits (endings.go).
//   - Restriction to loopback (options.go) and, with --key, to the server's user (key.go, gate.go),
//     because a client can run commands.
//
// Packages in without replace two unused parts of Temporal's server: workers that it starts at
// cloud providers and in Kubernetes, and archives in Google's cloud. They would otherwise be a
// third of what the first build compiles.
//
// # Stages of a run
//
//	command ── Options ──► Run
//	                        │  endings     signals, lifeline  ─► one context with a cause
//	                        │  database    claim: resolve, check, lock
//	                        │  ports       all free, or refused before anything is started
//	                        │  database    prepare: stamp, or create, in one transaction
//	                        │  server      configuration, tuning, interceptors
//	                        ▼
//	                       serve ── start ──► ready ── wait ──► stop
//
// # For programs that start it
//
// The ready file exists exactly as long as a client can connect. The exception is after a kill -9,
// when the file names a pid that is gone; the next server with the same ready file removes it
// before it starts. The lock on FILE.lock determines which server owns a database. A server holds
// it from before its start until its process exits. If a starter finds the database in use but no
// ready file, the server is starting or stopping. Both take only a short time, so the starter
// checks again.
//
// Two starters may start a server on one database at the same time. One of the servers exits with
// code 1 and reports who owns the database; the ready file is the other server's.
package devserver
