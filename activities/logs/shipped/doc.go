// Package shipped packs a directory, and stores on a host what runs have shipped there.
//
// # The archive
//
// An archive is a tar file without compression. [Pack] writes the entries sorted by name,
// with fixed times, owners and modes, and keeps only the executable bits of the modes: the
// same content gives the same archive, which is identified by its SHA-256, the digest.
//
// Pack leaves out files that .gitignore files name, even if git tracks them, including the
// .gitignore files above the directory within its git checkout. It also leaves out .git and the
// files that the caller excludes. Files are read, and links followed, through [os.Root], so
// nothing outside the directory gets into an archive. Pack refuses a symbolic link that leaves
// the directory, and anything that is neither a file nor a directory nor a link, and names it.
//
// An archive is unpacked through [os.Root] as well, so that nothing is written outside, even if
// it is hostile. It may contain only entries that Pack writes.
//
// # The store
//
// A [Store] is a directory in the state directory of a host worker:
//
//	shipped/archives/DIGEST           an archive
//	shipped/uploads/DIGEST-RUN.json   a run whose archive was uploaded here
//	shipped/runs/RUN/EXECUTION        the directory of a run, with a .json next to it
//	shipped/new                       unfinished files
//
// Archives and directories appear there by a rename, complete and checked. Each run has a
// directory of its own, so its tasks may write there.
//
// [Store.Sweep] removes an archive when no run on this host uses it and all runs that fetch it
// from here have ended. It removes the directory of a run together with the run's logs: once
// the host is done with the run and its log directory is gone.
//
// A caller that needs an archive to stay locks its digest ([Store.Lock]) until the need is
// recorded elsewhere.
package shipped
