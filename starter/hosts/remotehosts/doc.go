// Package remotehosts starts host workers on machines that have nothing but sshd and the
// program, for one run of a command, and ends them with it.
//
// # One connection
//
// The command starts a launch agent for each host: ssh, or another program that is called as
//
//	AGENT [ARGUMENT...] HOST COMMAND
//
// It must execute COMMAND in a shell on the host, pass its own stdin and stdout to it and from
// it byte by byte, and exit as it did. Everything passes through these two pipes, as HTTP/2
// with the host as the server. Login shells, and what they leave in the background, write to stdout,
// too, so the host sends frames, and the command skips what is between them:
//
//	POST /start        start a host worker; answers with the facts of the host
//	POST /connections  one connection of the host worker to the Temporal server
//	POST /archive      the archive of the run, for the host worker to unpack; see package shipped
//	POST /output       files of the run's logs, as they grow, and that they are complete
//	POST /stdin        the input of the task that reads stdin, if it is on this host
//	POST /stop         stop all processes, without the server
//	POST /end          end the host worker
//
// So a host needs no open port, nor a permission to forward any, and any agent will do. The
// host worker reaches the server through a Unix socket in its private directory, which other
// users of that host cannot use, and gets no credentials: the command makes the connections to
// the server, and follows a server that is restarted at another address.
//
// # The end
//
// The pipes end when the command ends or dies. The program on the host sees that, its host
// worker loses its lifeline and stops all processes, and the directory is removed. A host that
// is cut off notices later, and the fence of the run (on_disconnect) stops its processes.
//
// # Output
//
// Tasks write into files on their host. These files are copied to the same names below the log
// directory of the command, which shows them as its own tasks' output, and has them when the
// host is given back. The end of a host's output is a record of its own; a connection that
// breaks before it leaves the output incomplete, which [Hosts.End] reports.
package remotehosts
