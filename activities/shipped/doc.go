// Package shipped packs a directory, and keeps on a host what runs have shipped there.
//
// # The archive
//
// An archive is a tar file without compression. [Pack] writes the entries in the order of
// their names, with fixed times, owners and modes, of which only the executable bits are
// kept: what has the same content has the same archive, which is known by its SHA-256, the
// digest.
//
// What .gitignore files name stays behind, those above the directory included as far as its
// git checkout reaches, whether or not git tracks it; and so do .git and what is excluded by
// hand. Files are read, and links followed, by way of [os.Root]: nothing from outside gets
// into an archive. A symbolic link that leaves the directory is refused by its name, and so is
// what is neither a file nor a directory nor a link.
//
// An archive is unpacked by way of [os.Root] as well, so that whatever is in it, nothing is
// written outside. It may have what Pack writes and nothing else.
//
// # The store
//
// A [Store] is a directory in the state directory of a host worker:
//
//	shipped/archives/DIGEST           an archive
//	shipped/uploads/DIGEST-RUN.json   a run that has its archive from here
//	shipped/runs/RUN/EXECUTION        the directory of a run, and beside it a .json: of what
//	shipped/new                       what is being written
//
// Archives and directories appear there by a rename, complete and checked. Each run has a
// directory of its own, so that what its tasks write there is its own as well.
//
// [Store.Sweep] removes what nobody needs: an archive when no run on this host has it and all
// runs that have it from here have ended, and the directory of a run together with the run's
// logs: once the host has done with the run and its log directory is gone.
//
// Whoever needs an archive to stay locks its digest ([Store.Lock]) until that can be seen
// elsewhere.
package shipped
