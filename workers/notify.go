package workers

import (
	"net"
	"os"
	"time"

	"go.uber.org/zap"
)

// What a service of systemd with Type=notify tells it; see sd_notify(3).
const (
	serviceReady    = "READY=1"
	serviceStopping = "STOPPING=1"
)

// tellService tells systemd what has become of this process, where it is a service. What cannot be
// told is logged: systemd ends a service of which it hears nothing.
func tellService(log *zap.Logger, state string) {
	if err := sendService(os.Getenv("NOTIFY_SOCKET"), state); err != nil {
		log.Warn("systemd cannot be told", zap.String("what", state), zap.Error(err))
	}
}

// sendService sends one message to a socket. Unlike SdNotify of go-systemd it does not wait for
// ever for one that nobody reads. An empty name: there is none.
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
