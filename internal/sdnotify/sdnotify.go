// Package sdnotify notifies the service manager that started this process, systemd or one that speaks its protocol, when
// the service is ready, alive and stopping (sd_notify(3)). Without such a manager it says nothing.
package sdnotify

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Notifier talks to a service manager. The zero value has none to talk to.
type Notifier struct {
	socket string
	// Watchdog is the interval at which the manager expects Alive, 0 if it does not. Send it twice as often.
	Watchdog time.Duration
}

// New reads what the manager has put into the environment: lookup gives a variable, "" if it is not set. pid is this
// process; a watchdog that is meant for another one does not count.
func New(lookup func(name string) string, pid int) Notifier {
	n := Notifier{socket: lookup("NOTIFY_SOCKET")}
	if n.socket == "" {
		return n
	}
	if of := lookup("WATCHDOG_PID"); of != "" && of != strconv.Itoa(pid) {
		return n
	}
	if µs, err := strconv.ParseInt(lookup("WATCHDOG_USEC"), 10, 64); err == nil && µs > 0 {
		n.Watchdog = time.Duration(min(µs, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond
	}
	return n
}

// Ready says that the service has started, with a line about what it does.
func (n Notifier) Ready(status string) error { return n.send("READY=1", "STATUS="+oneLine(status)) }

// Alive answers the watchdog.
func (n Notifier) Alive() error { return n.send("WATCHDOG=1") }

// Stopping says that the service has begun to stop.
func (n Notifier) Stopping() error { return n.send("STOPPING=1") }

// sendTimeout bounds how long one message may take.
const sendTimeout = time.Second

// send hands assignments, one a line, to the manager. A datagram arrives as a whole or not at all.
func (n Notifier) send(assignments ...string) error {
	if n.socket == "" {
		return nil
	}
	// A name that begins with @ is one of Linux's abstract sockets, which package net knows too.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	// A manager that does not read must not hold the service up.
	if err := c.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = c.Write([]byte(strings.Join(assignments, "\n")))
	return err
}

// oneLine keeps a text from adding assignments.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
