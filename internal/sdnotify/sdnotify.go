// Package sdnotify tells the service manager of this process, such as systemd, when the service is ready, alive and stopping
// (sd_notify(3)). Without a service manager it does nothing.
package sdnotify

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Notifier sends messages to a service manager. The zero value sends nothing.
type Notifier struct {
	socket string
	// Watchdog is the manager's interval for Alive, or 0. Send it twice as often.
	Watchdog time.Duration
}

// New reads the environment set by the manager: lookup returns a variable, "" if it is not set. pid is this process; a watchdog of another
// process is ignored.
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

// Ready reports that the service has started, with a line of status.
func (n Notifier) Ready(status string) error { return n.send("READY=1", "STATUS="+oneLine(status)) }

// Alive resets the watchdog.
func (n Notifier) Alive() error { return n.send("WATCHDOG=1") }

// Stopping reports that the service is stopping.
func (n Notifier) Stopping() error { return n.send("STOPPING=1") }

// sendTimeout is the longest time for one message.
const sendTimeout = time.Second

// send sends assignments, one on each line, in one datagram.
func (n Notifier) send(assignments ...string) error {
	if n.socket == "" {
		return nil
	}
	// Package net, too, takes a name that begins with @ as an abstract socket of Linux.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	// A manager that does not read must not delay the service.
	if err := c.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = c.Write([]byte(strings.Join(assignments, "\n")))
	return err
}

// oneLine removes line breaks, so that a text cannot add assignments.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
