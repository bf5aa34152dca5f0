// Package remotehosts starts host workers on machines that need only sshd and the program, for
// one command's run, and stops them with it.
//
// # One connection
//
// The command starts a launch agent for each host: ssh, or another program that is called as
//
//	AGENT [ARGUMENT...] HOST COMMAND
//
// The agent must execute COMMAND in a shell on the host, forward the agent's stdin and COMMAND's
// stdout unchanged, and exit with COMMAND's status. Everything passes through these two pipes, as
// HTTP/2 with the host as the server. Login shells and their background processes also write to
// stdout, so the host sends frames, and the command skips any text between them:
//
//	POST /start        start a host worker; answers with the facts of the host
//	POST /connections  one connection of the host worker to the Temporal server
//	POST /archive      the archive of the run, for the host worker to unpack; see package shipped
//	POST /output       the run's log files, as they grow, and a final record that they are complete
//	POST /stdin        the input of the task that reads stdin, if it is on this host
//	POST /stop         stop all processes, without the server
//	POST /end          end the host worker
//
// So a host does not need an open port or permission to forward one, and any agent will do. The
// host worker reaches the server through a Unix socket in its private directory, which the host's
// other users cannot use, and it gets no credentials: the command connects to the server, and
// reconnects if the server is restarted at another address.
//
// # Shutdown
//
// The pipes close when the command exits or dies. The program on the host notices, its host
// worker loses its lifeline and stops all processes, and the directory is removed. A host that
// is cut off notices later, and the run's fence (on_disconnect) stops its processes.
//
// # Output
//
// Tasks write to files on their host. These files are copied under the same names to the
// command's log directory. The command shows them like its own tasks' output, and keeps them when
// the host is released. A separate record marks the end of a host's output; a connection that
// breaks before that record leaves the output incomplete, which [Hosts.End] reports.
package remotehosts
