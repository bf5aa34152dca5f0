// Package shipped packs directories, and stores what runs have shipped to a host.
//
// # The archive
//
// An archive is an uncompressed tar file. [Pack] writes the entries sorted by name, with fixed
// times and owners, and with modes of which only the executable bits are kept. So the same content
// always results in the same archive. An archive is identified by its digest, which is its SHA-256.
//
// Pack omits files that match a .gitignore file even if git tracks them. This includes .gitignore
// files above the directory, up to the root of its git checkout. It also omits .git and the files
// that the caller excludes. Files are read and links are followed through [os.Root], so nothing
// outside the directory can be packed. If there is a symbolic link that leads out of the directory,
// or anything that is not a file, directory or link, Pack fails and names it.
//
// An archive is also unpacked through [os.Root], so that even a hostile archive cannot write
// outside the directory. It may contain only entries of the kinds that Pack writes.
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
// Archives and directories are complete and checked before they are renamed into place. Each run
// has its own directory, so its tasks may write to it.
//
// [Store.Sweep] removes an archive when no run on this host uses it and all runs that fetch it from
// this host have ended. It removes a run's directory together with the run's logs, once the host is
// done with the run and its log directory is gone.
//
// A caller that needs an archive locks its digest ([Store.Lock]) until the need is recorded
// elsewhere.
package shipped
