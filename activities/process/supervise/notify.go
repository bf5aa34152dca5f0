package supervise

import (
	"log/slog"
	"net"
	"os"
	"time"
)

// Messages to systemd from a service with Type=notify; see sd_notify(3).
const (
	serviceReady    = "READY=1"
	serviceStopping = "STOPPING=1"
)

// tellService reports this process's state to systemd, if it is a service. It logs an error,
// because systemd kills a service that does not report.
func tellService(log *slog.Logger, state string) {
	if err := sendService(os.Getenv("NOTIFY_SOCKET"), state); err != nil {
		log.Warn("could not notify systemd", "what", state, "error", err)
	}
}

// sendService sends a message to a socket, unless the socket's name is empty. Unlike go-systemd's
// SdNotify it does not block forever if nothing reads the socket.
func sendService(socket, state string) error {
	if socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	_, err = c.Write([]byte(state))
	return err
}
