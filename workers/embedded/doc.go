// Package embedded finds, or starts, the Temporal server that clusterrun brings
// along for those who have none: one per user, in the background, on a database
// below the user's state directory. It serves all runs of the user, dies with
// none of them, and leaves when nobody has used it for a while.
//
// Two locks make that safe without any guess about process IDs:
//
//   - clusterrun.db.lock is held by the server itself for as long as it lives.
//     While it is held, ready.json says where the server listens; when it is
//     free, that file is what a killed server left behind and tells only which
//     port the next one should have.
//   - start.lock is held by whoever starts a server, and shared by whoever
//     looks for one. So two commands never start two servers, and a look at the
//     first lock never gets in the way of a server that is just taking it.
//
// Nobody but its user can use the server: its ports want to see the key in key.pem, which
// it has made and which only the user can read.
//
// Servers come and go, and whoever uses one goes along: a client looks for the
// server at each new connection ([Home.Dial]), so its port matters to nobody,
// and each command that needs the server has it started again for as long as
// the command lives ([Home.Keep]).
package embedded
