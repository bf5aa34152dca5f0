// Package pty opens pairs of pseudoterminals, and reads and sets the modes and sizes of terminals.
//
// It exists because github.com/creack/pty opens a blocking master and a non-blocking slave, which
// programs do not expect as their stdin, and because golang.org/x/term hides the special characters
// in the modes.
package pty

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a pair of pseudoterminals. Data written to one is read from the other. Programs use
// the slave, which is a terminal for them. It does not become the caller's controlling terminal.
//
// Reading from the master fails with EIO once all descriptors of the slave are closed and all data
// written to it has been read.
func Open() (master, slave *os.File, err error) {
	// The master is non-blocking, so that a read returns when the file is closed or its deadline
	// passes.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	defer func() {
		if err != nil {
			_ = master.Close()
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock a pseudoterminal: %w", err)
	}
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("pseudoterminal number: %w", err)
	}
	name := fmt.Sprintf("/dev/pts/%d", n)
	other, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", name, err)
	}
	return master, os.NewFile(uintptr(other), name), nil
}

// Is reports whether f is a terminal.
func Is(f *os.File) bool {
	_, err := Modes(f)
	return err == nil
}

// Modes returns a terminal's modes.
func Modes(f *os.File) (*unix.Termios, error) {
	var modes *unix.Termios
	err := with(f, func(fd int) (err error) {
		modes, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	if err != nil {
		return nil, err // IoctlGetTermios returns modes even if it fails
	}
	return modes, nil
}

// SetModes sets a terminal's modes.
func SetModes(f *os.File, modes *unix.Termios) error {
	return with(f, func(fd int) error { return unix.IoctlSetTermios(fd, unix.TCSETS, modes) })
}

// Raw returns modes that make a terminal pass bytes unchanged in both directions, like
// cfmakeraw(3).
func Raw(modes *unix.Termios) *unix.Termios {
	raw := *modes
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag &^= unix.CSIZE | unix.PARENB
	raw.Cflag |= unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	return &raw
}

// Size returns a terminal's size.
func Size(f *os.File) (rows, columns int, err error) {
	err = with(f, func(fd int) error {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			rows, columns = int(size.Row), int(size.Col)
		}
		return err
	})
	return rows, columns, err
}

// SetSize sets a terminal's size. If the size changes, programs in the foreground get a SIGWINCH.
func SetSize(f *os.File, rows, columns int) error {
	return with(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	})
}

// Foreground returns the foreground process group of a master's slave, or 0 if the slave is not a
// controlling terminal.
func Foreground(master *os.File) (group int, err error) {
	err = with(master, func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return group, err
}

// with calls do with f's descriptor and, unlike [os.File.Fd], keeps the file's blocking mode.
func with(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}
