// Package embedded finds or starts the Temporal server that clusterrun includes for users without a
// server: one per user, in the background, on a database in the user's state directory. It serves
// all of the user's runs, outlives them, and exits after being idle for a while.
//
// Two locks make that safe without guessing process IDs:
//
//   - clusterrun.db.lock is held by the server itself for as long as it lives. While it is held,
//     ready.json contains the server's address. When it is free, a killed server has left that file
//     behind, and only its port is used, for the next server.
//   - start.lock is held by a process that starts a server, and shared by processes that look for
//     one. So two commands never start two servers, and checking the first lock never interferes
//     with a server that is just taking it.
//
// Only its user can use the server: its ports require the key in key.pem, which the server has made
// and which only the user can read.
//
// Servers come and go, and clients follow them: a client looks for the server at each new
// connection ([Home.Dial]), so its port may change, and each command that needs the server restarts
// it for as long as the command lives ([Home.Keep]).
package embedded
