// Package shipped packs directories, and stores on a host what runs have shipped to it.
//
// # The archive
//
// An archive is an uncompressed tar file. [Pack] writes the entries sorted by name, with fixed
// times, owners and modes, and keeps only the executable bits of the modes, so the same content
// gives the same archive, which is identified by its SHA-256, the digest.
//
// Pack leaves out files that .gitignore files name, even if git tracks them, including the
// .gitignore files above the directory within its git checkout. It also leaves out .git and the
// files that the caller excludes. Files are read, and links followed, through [os.Root], so nothing
// outside the directory gets into an archive. Pack refuses a symbolic link that leaves the
// directory, and anything that is not a file, directory or link, and names it.
//
// An archive is also unpacked through [os.Root], so that nothing is written outside, even if it is
// hostile. It may contain only entries that Pack writes.
//
// # The store
//
// A [Store] is a directory in a host worker's state directory:
//
//	shipped/archives/DIGEST           an archive
//	shipped/uploads/DIGEST-RUN.json   a run that uploaded its archive to this host
//	shipped/runs/RUN/EXECUTION        a run's directory, with a .json next to it
//	shipped/new                       unfinished files
//
// Archives and directories get there by a rename, complete and checked. Each run has its own
// directory, so its tasks may write to it.
//
// [Store.Sweep] removes an archive when no run on this host uses it and all runs that fetch it from
// this host have ended. It removes a run's directory together with the run's logs, once the host is
// done with the run and its log directory is gone.
//
// A caller that needs an archive to stay locks its digest ([Store.Lock]) until the need is recorded
// elsewhere.
package shipped
