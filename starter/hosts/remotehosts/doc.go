// Package remotehosts starts host workers on machines where there is nothing but sshd and
// the program, for one run of a command, and ends them with it.
//
// # One connection
//
// The command starts a launch agent for each host: ssh, or another program that is called
// as
//
//	AGENT [ARGUMENT...] HOST COMMAND
//
// and has a shell there execute COMMAND, passes its own stdin and stdout to it and from it
// byte by byte, and exits as it did. Everything goes over these two pipes, as HTTP/2 of
// which the host is the server:
//
//	POST /start        start a host worker; answers with what the host is
//	POST /connections  one connection of the host worker to the Temporal server
//	POST /archive      what the run ships, for the host worker to unpack; see package shipped
//	POST /output       files of the run's logs, as they grow, and that they are complete
//	POST /stdin        what the task that reads stdin gets, if it is on this host
//	POST /stop         stop all processes, without the server
//	POST /end          end the host worker
//
// So a host needs no open port, nor a permission to forward any, and any agent will do. The
// host worker finds the server behind a Unix socket in its private directory, which nobody
// else on that host can use, and gets no credentials: the command makes the connections to
// the server, and follows one that is started again elsewhere.
//
// # The end
//
// However the command ends, the pipes do. The program on the host sees that, its host worker
// loses its lifeline and stops all processes, and the directory is removed. A host that is
// cut off notices later, and its processes stop by the fence of their run (on_disconnect).
//
// # Output
//
// Tasks write into files on their host. What these get is copied into the same files below
// the log directory of the command, which shows them as those of its own tasks: so they are
// there when the host is given back. The end of a host's output is a record of its own; a
// connection that breaks before it is an [IncompleteError].
package remotehosts
